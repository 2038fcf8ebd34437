-- The anchors of some buckets: what a text that is not in the index is a candidate with. Index-only and bounded.
SELECT DISTINCT anchor.doc_id
FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} WHERE bucket_hash = query.bucket_hash
    ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0)
) AS anchor
ORDER BY anchor.doc_id
