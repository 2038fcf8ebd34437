-- The candidate relation for some heads: of each bucket its anchors, and the whole bucket where the head is itself one.
-- Two bounded index-only scans a bucket for a head that is no anchor. Relies on the index on (bucket_hash, doc_id).
WITH query AS (
    SELECT * FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS q (doc_id, bucket_hash)
)
SELECT query.doc_id, found.doc_id FROM query CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} WHERE bucket_hash = query.bucket_hash
    ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0)
) AS found
WHERE found.doc_id <> query.doc_id
UNION
SELECT query.doc_id, member.doc_id
FROM query
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} WHERE bucket_hash = query.bucket_hash
    ORDER BY doc_id OFFSET %(bucket_limit)s - 1 LIMIT 1
) AS last_anchor
JOIN {band} AS member ON member.bucket_hash = query.bucket_hash AND member.doc_id > last_anchor.doc_id
WHERE %(bucket_limit)s > 0 AND query.doc_id <= last_anchor.doc_id
ORDER BY 1, 2
