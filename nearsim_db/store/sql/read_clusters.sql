-- Clusters, the largest first, each with its survivor and members by external id, in doc_id order. Where a document was
-- deleted since clusters were linked, the first member stands in for the survivor, and no cluster of one is left.
SELECT member.cluster_id,
    coalesce(max(document.external_id) FILTER (WHERE member.is_survivor),
        (array_agg(document.external_id ORDER BY member.doc_id))[1]),
    array_agg(document.external_id ORDER BY member.doc_id)
FROM {cluster_member} AS member JOIN nearsim.document USING (doc_id)
GROUP BY member.cluster_id
HAVING count(*) > 1
ORDER BY count(*) DESC, member.cluster_id
