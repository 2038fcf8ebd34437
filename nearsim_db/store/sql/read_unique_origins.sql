-- Where the documents that stay came from, in the order of the input: survivors, and documents in no cluster.
SELECT CAST(document.attributes ->> 'part' AS integer) AS part,
    CAST(document.attributes ->> 'position' AS bigint) AS position
FROM nearsim.document LEFT JOIN {cluster_member} AS member USING (doc_id)
WHERE document.collection_id = %(collection_id)s AND member.is_survivor IS NOT FALSE
ORDER BY part, position
