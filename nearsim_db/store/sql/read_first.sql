-- The first document of some digests: the head of their twins. Relies on the index on (feature_digest, doc_id).
SELECT query.digest, first.doc_id FROM unnest(CAST(%(digests)s AS uuid[])) AS query (digest)
CROSS JOIN LATERAL (
    SELECT doc_id FROM {signature} WHERE feature_digest = query.digest ORDER BY doc_id LIMIT 1
) AS first
