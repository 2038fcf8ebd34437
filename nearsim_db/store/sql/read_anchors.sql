-- The anchors of some buckets, and whether there are more members than anchors. Relies on the index on (bucket_hash,
-- doc_id).
SELECT bucket.bucket_hash, anchor.doc_id, EXISTS (
    SELECT FROM {band} WHERE bucket_hash = bucket.bucket_hash ORDER BY doc_id OFFSET %(bucket_limit)s)
FROM (SELECT DISTINCT bucket_hash FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS q (bucket_hash)) AS bucket
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} WHERE bucket_hash = bucket.bucket_hash
    ORDER BY doc_id LIMIT %(bucket_limit)s
) AS anchor
