-- name: look_up_anchors
-- The heads to compare with a text that is not in the index, with the same columns as the statement for one server. The
-- anchors are read first, from the shards of their buckets, with bounded work and index-only scans; Citus needs the outer
-- LIMIT, which is the largest number. Relies on the same indexes.
WITH anchor AS MATERIALIZED (
    SELECT first.doc_id
    FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
    CROSS JOIN LATERAL (
        SELECT doc_id FROM {band} AS band WHERE bucket_hash = query.bucket_hash
            AND {in_buckets}
        ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0)
    ) AS first
    LIMIT 9223372036854775807
), twin AS MATERIALIZED (
    SELECT doc_id FROM {signature} AS signature WHERE feature_digest = %(digest)s ORDER BY doc_id LIMIT 1
), linked AS MATERIALIZED (
    SELECT doc_id FROM anchor
    {with_twin_and_its_pairs}
), packed AS MATERIALIZED (
    {packed_heads}
)
SELECT packed.doc_ids, packed.sketches, packed.digests, packed.sizes
FROM {serving}
LEFT JOIN packed ON true
