-- What a text that is not in the index would be paired with, if it is alike enough: the anchors of its buckets; the head
-- of the documents with its own features, and what that is paired with. One row of nulls where there are none, no row
-- where the generation does not serve, or texts were purged since features of the collection were last let go.
-- Bounded, and the same plan with any statistics. Relies on the index on (bucket_hash, doc_id), read index-only, on those
-- of the signatures on doc_id and (feature_digest, doc_id), and on those of the pairs.
SELECT found.doc_id, found.sketch, found.feature_digest
FROM (
    SELECT FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE generation.generation_id = {generation_id} AND generation.state = 'live'
        AND collection.purged_at IS NOT DISTINCT FROM CAST(%(purged_at)s AS timestamptz)
) AS serving
LEFT JOIN LATERAL (
    WITH twin AS MATERIALIZED (
        SELECT doc_id FROM {signature} WHERE feature_digest = %(digest)s ORDER BY doc_id LIMIT 1
    ), linked AS MATERIALIZED (
        SELECT anchor.doc_id
        FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
        CROSS JOIN LATERAL (
            SELECT doc_id FROM {band} WHERE bucket_hash = query.bucket_hash
            ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0)
        ) AS anchor
        UNION
        SELECT doc_id FROM twin
        UNION
        SELECT pair.right_id FROM twin CROSS JOIN LATERAL (
            SELECT right_id FROM {similar_pair} WHERE left_id = twin.doc_id OFFSET 0) AS pair
        UNION
        SELECT pair.left_id FROM twin CROSS JOIN LATERAL (
            SELECT left_id FROM {similar_pair} WHERE right_id = twin.doc_id OFFSET 0) AS pair
    )
    SELECT linked.doc_id, head.sketch, head.feature_digest
    FROM linked CROSS JOIN LATERAL (
        SELECT sketch, feature_digest FROM {signature}
        WHERE doc_id = linked.doc_id AND head_id = linked.doc_id LIMIT 1
    ) AS head
) AS found ON true
ORDER BY found.doc_id
