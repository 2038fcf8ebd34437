-- name: look_up_anchors
-- Documents to compare with a text that is not in the index: rows as in the statement for one server. The anchors are
-- read first, from the shards of their buckets, bounded and index-only; the outer limit, which this needs, is none.
-- Relies on the same indexes.
WITH anchor AS MATERIALIZED (
    SELECT found.doc_id
    FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
    CROSS JOIN LATERAL (
        SELECT doc_id FROM {band} AS band WHERE bucket_hash = query.bucket_hash
            AND {in_buckets}
        ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0)
    ) AS found
    LIMIT 9223372036854775807
), twin AS MATERIALIZED (
    SELECT doc_id FROM {signature} AS signature WHERE feature_digest = %(digest)s ORDER BY doc_id LIMIT 1
), linked AS MATERIALIZED (
    SELECT doc_id FROM anchor
    {with_twin_and_its_pairs}
), found AS MATERIALIZED (
    {packed_heads}
)
SELECT found.doc_ids, found.sketches, found.digests, found.sizes
FROM {serving}
LEFT JOIN found ON true
