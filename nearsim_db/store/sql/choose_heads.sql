-- Each of these digests has its smallest doc_id as head. Relies on the index on (feature_digest, doc_id).
WITH first AS (
    SELECT query.digest, found.doc_id FROM unnest(CAST(%(digests)s AS uuid[])) AS query (digest)
    CROSS JOIN LATERAL (
        SELECT doc_id FROM {signature} WHERE feature_digest = query.digest ORDER BY doc_id LIMIT 1
    ) AS found
)
UPDATE {signature} AS signature SET head_id = first.doc_id
FROM first WHERE signature.feature_digest = first.digest AND signature.head_id <> first.doc_id
