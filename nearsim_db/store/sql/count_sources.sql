-- The sources of a collection, those with most documents in clusters first: documents, those in clusters, clusters in which
-- theirs was published first, survivors, and how many sources there are. Reads documents and members.
WITH member AS (
    SELECT doc_id, is_survivor, document.published_at IS NOT NULL
        AND row_number() OVER (PARTITION BY cluster_id ORDER BY document.published_at, doc_id) = 1 AS is_first
    FROM {cluster_member} JOIN nearsim.document USING (doc_id)
)
SELECT document.source, count(*), count(member.doc_id), count(*) FILTER (WHERE member.is_first),
    count(*) FILTER (WHERE member.is_survivor), count(*) OVER ()
FROM nearsim.document LEFT JOIN member USING (doc_id)
WHERE document.collection_id = %(collection_id)s
GROUP BY document.source
ORDER BY count(member.doc_id) DESC, count(*) DESC, document.source COLLATE "C"
LIMIT %(amount)s
