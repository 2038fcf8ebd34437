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
    UNION
    SELECT doc_id FROM twin
    UNION
    SELECT pair.right_id FROM twin CROSS JOIN LATERAL (
        SELECT right_id FROM {similar_pair} AS similar_pair WHERE left_id = twin.doc_id OFFSET 0) AS pair
    UNION
    SELECT pair.left_id FROM twin CROSS JOIN LATERAL (
        SELECT left_id FROM {similar_pair} AS similar_pair WHERE right_id = twin.doc_id OFFSET 0) AS pair
), found AS MATERIALIZED (
    SELECT string_agg(int8send(linked.doc_id), '') AS doc_ids, string_agg(head.sketch, '') AS sketches,
        string_agg(uuid_send(head.feature_digest), '') AS digests,
        string_agg(int4send(octet_length(head.sketch)), '') AS sizes
    FROM linked CROSS JOIN LATERAL (
        SELECT sketch, feature_digest FROM {signature} AS signature
        WHERE doc_id = linked.doc_id AND head_id = linked.doc_id LIMIT 1
    ) AS head
)
SELECT found.doc_ids, found.sketches, found.digests, found.sizes
FROM (
    SELECT FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE generation.generation_id = {generation_id} AND generation.state = 'live'
        AND collection.purged_at IS NOT DISTINCT FROM CAST(%(purged_at)s AS timestamptz)
) AS serving
LEFT JOIN found ON true
