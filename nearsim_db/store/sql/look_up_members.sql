-- A slice of the members of those buckets over the limit that a head is an anchor of, in doc_id order; the other anchors
-- are found by look_up_candidates. Index-only and bounded. Relies on the index on (bucket_hash, doc_id).
SELECT DISTINCT member.doc_id
FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} WHERE bucket_hash = query.bucket_hash
    ORDER BY doc_id OFFSET %(bucket_limit)s - 1 LIMIT 1
) AS last_anchor
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band}
    WHERE bucket_hash = query.bucket_hash AND doc_id > greatest(last_anchor.doc_id, %(after)s)
    ORDER BY doc_id LIMIT %(batch)s
) AS member
WHERE %(doc_id)s <= last_anchor.doc_id
ORDER BY member.doc_id LIMIT %(batch)s
