-- Clusters, the largest first, each with its survivor and members by external id, in doc_id order.
SELECT member.cluster_id,
    max(document.external_id) FILTER (WHERE member.is_survivor),
    array_agg(document.external_id ORDER BY member.doc_id)
FROM {cluster_member} AS member JOIN nearsim.document USING (doc_id)
GROUP BY member.cluster_id
ORDER BY count(*) DESC, member.cluster_id
