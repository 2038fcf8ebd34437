-- The candidate relation for some heads, bounded: of each bucket its anchors, and one member more (marked) where there
-- are any, by which an anchor learns that it has to look through the bucket. Index-only. Relies on the index on
-- (bucket_hash, doc_id).
SELECT DISTINCT query.doc_id, found.doc_id,
    CAST(%(bucket_limit)s > 0 AND found.place > %(bucket_limit)s AS integer)
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS query (doc_id, bucket_hash)
CROSS JOIN LATERAL (
    SELECT doc_id, row_number() OVER (ORDER BY doc_id) AS place FROM (
        SELECT doc_id FROM {band} WHERE bucket_hash = query.bucket_hash
        ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0) + 1
    ) AS first
) AS found
