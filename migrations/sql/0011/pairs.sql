-- The view of 0006 with distances, and with the counts of twins where the metric has some. The metric is asked for in a
-- subquery of its own, which runs once for a generation and not once for a row.
CREATE OR REPLACE VIEW nearsim.pairs WITH (security_invoker = true) AS
SELECT live.collection, live.profile, live.collection_id, live.generation_id, found.*
FROM nearsim.live_generations AS live
CROSS JOIN LATERAL (
    -- Two heads.
    SELECT pair.left_id, pair.right_id, a.external_id AS left_external_id,
        b.external_id AS right_external_id, a.title AS left_title, b.title AS right_title, a.source AS left_source,
        b.source AS right_source, a.published_at AS left_published_at, b.published_at AS right_published_at,
        pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, false AS are_twins,
        true AS are_heads,
        (SELECT numbers_digest FROM nearsim.signature
            WHERE generation_id = live.generation_id AND signature.doc_id = a.doc_id)
            <> (SELECT numbers_digest FROM nearsim.signature
            WHERE generation_id = live.generation_id AND signature.doc_id = b.doc_id) AS numbers_differ,
        verdict.verdict, pair.verified_at, pair.distance
    FROM nearsim.similar_pair AS pair
    JOIN nearsim.document AS a ON a.doc_id = pair.left_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = pair.right_id AND b.collection_id = live.collection_id
    LEFT JOIN nearsim.verdict ON verdict.left_id = a.doc_id AND verdict.right_id = b.doc_id AND verdict.undone_at IS NULL
    WHERE pair.generation_id = live.generation_id
    UNION ALL
    -- The left head and a twin of the right one.
    SELECT pair.left_id, r.doc_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source, a.published_at, b.published_at,
        pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, false, false,
        (SELECT numbers_digest FROM nearsim.signature
            WHERE generation_id = live.generation_id AND signature.doc_id = a.doc_id)
            <> r.numbers_digest,
        verdict.verdict, pair.verified_at, pair.distance
    FROM nearsim.similar_pair AS pair
    JOIN nearsim.signature AS r ON r.generation_id = live.generation_id AND r.head_id = pair.right_id AND r.head_id <> r.doc_id
    JOIN nearsim.document AS a ON a.doc_id = pair.left_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    LEFT JOIN nearsim.verdict ON verdict.left_id = a.doc_id AND verdict.right_id = b.doc_id AND verdict.undone_at IS NULL
    WHERE pair.generation_id = live.generation_id
    UNION ALL
    -- A twin of the left head and the right head, in either order.
    SELECT l.doc_id, pair.right_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source, a.published_at, b.published_at,
        pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, false, false,
        l.numbers_digest
            <> (SELECT numbers_digest FROM nearsim.signature
            WHERE generation_id = live.generation_id AND signature.doc_id = b.doc_id),
        verdict.verdict, pair.verified_at, pair.distance
    FROM nearsim.similar_pair AS pair
    JOIN nearsim.signature AS l ON l.generation_id = live.generation_id AND l.head_id = pair.left_id AND l.head_id <> l.doc_id
    JOIN nearsim.document AS a ON a.doc_id = l.doc_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = pair.right_id AND b.collection_id = live.collection_id
    LEFT JOIN nearsim.verdict ON verdict.left_id = a.doc_id AND verdict.right_id = b.doc_id AND verdict.undone_at IS NULL
    WHERE pair.generation_id = live.generation_id AND l.doc_id < pair.right_id
    UNION ALL
    SELECT pair.right_id, r.doc_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source, a.published_at, b.published_at,
        pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, false, false,
        (SELECT numbers_digest FROM nearsim.signature
            WHERE generation_id = live.generation_id AND signature.doc_id = a.doc_id)
            <> r.numbers_digest,
        verdict.verdict, pair.verified_at, pair.distance
    FROM nearsim.similar_pair AS pair
    JOIN nearsim.signature AS r ON r.generation_id = live.generation_id AND r.head_id = pair.left_id AND r.head_id <> r.doc_id
    JOIN nearsim.document AS a ON a.doc_id = pair.right_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    LEFT JOIN nearsim.verdict ON verdict.left_id = a.doc_id AND verdict.right_id = b.doc_id AND verdict.undone_at IS NULL
    WHERE pair.generation_id = live.generation_id AND r.doc_id > pair.right_id
    UNION ALL
    -- Twins of both heads, in either order.
    SELECT l.doc_id, r.doc_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source, a.published_at, b.published_at,
        pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, false, false,
        l.numbers_digest
            <> r.numbers_digest,
        verdict.verdict, pair.verified_at, pair.distance
    FROM nearsim.similar_pair AS pair
    JOIN nearsim.signature AS l ON l.generation_id = live.generation_id AND l.head_id = pair.left_id AND l.head_id <> l.doc_id
    JOIN nearsim.signature AS r ON r.generation_id = live.generation_id AND r.head_id = pair.right_id AND r.head_id <> r.doc_id
    JOIN nearsim.document AS a ON a.doc_id = l.doc_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    LEFT JOIN nearsim.verdict ON verdict.left_id = a.doc_id AND verdict.right_id = b.doc_id AND verdict.undone_at IS NULL
    WHERE pair.generation_id = live.generation_id AND (l.doc_id, pair.left_id) < (r.doc_id, pair.right_id)
    UNION ALL
    SELECT l.doc_id, r.doc_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source, a.published_at, b.published_at,
        pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, false, false,
        l.numbers_digest
            <> r.numbers_digest,
        verdict.verdict, pair.verified_at, pair.distance
    FROM nearsim.similar_pair AS pair
    JOIN nearsim.signature AS r ON r.generation_id = live.generation_id AND r.head_id = pair.left_id AND r.head_id <> r.doc_id
    JOIN nearsim.signature AS l ON l.generation_id = live.generation_id AND l.head_id = pair.right_id AND l.head_id <> l.doc_id
    JOIN nearsim.document AS a ON a.doc_id = l.doc_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    LEFT JOIN nearsim.verdict ON verdict.left_id = a.doc_id AND verdict.right_id = b.doc_id AND verdict.undone_at IS NULL
    WHERE pair.generation_id = live.generation_id AND (r.doc_id, pair.left_id) > (l.doc_id, pair.right_id)
    UNION ALL
    -- A head and its own twin.
    SELECT r.head_id, r.doc_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source, a.published_at, b.published_at,
        CAST(1 AS double precision),
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'jaccard' THEN r.feature_count END,
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'jaccard' THEN r.feature_count END,
        CAST(1 AS real), live.bands, true, false,
        (SELECT numbers_digest FROM nearsim.signature
            WHERE generation_id = live.generation_id AND signature.doc_id = a.doc_id)
            <> r.numbers_digest,
        verdict.verdict, CAST(NULL AS timestamptz),
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'euclidean' THEN CAST(0 AS double precision) END
    FROM nearsim.signature AS r
    JOIN nearsim.document AS a ON a.doc_id = r.head_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    LEFT JOIN nearsim.verdict ON verdict.left_id = a.doc_id AND verdict.right_id = b.doc_id AND verdict.undone_at IS NULL
    WHERE r.generation_id = live.generation_id AND r.head_id <> r.doc_id
    UNION ALL
    -- Two twins of one head.
    SELECT l.doc_id, r.doc_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source, a.published_at, b.published_at,
        CAST(1 AS double precision),
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'jaccard' THEN r.feature_count END,
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'jaccard' THEN r.feature_count END,
        CAST(1 AS real), live.bands, true, false,
        l.numbers_digest
            <> r.numbers_digest,
        verdict.verdict, CAST(NULL AS timestamptz),
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'euclidean' THEN CAST(0 AS double precision) END
    FROM nearsim.signature AS r
    JOIN nearsim.signature AS l ON l.generation_id = live.generation_id AND l.head_id = r.head_id AND l.doc_id < r.doc_id AND l.head_id <> l.doc_id
    JOIN nearsim.document AS a ON a.doc_id = l.doc_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    LEFT JOIN nearsim.verdict ON verdict.left_id = a.doc_id AND verdict.right_id = b.doc_id AND verdict.undone_at IS NULL
    WHERE r.generation_id = live.generation_id AND r.head_id <> r.doc_id
) AS found;

COMMENT ON COLUMN nearsim.pairs.similarity IS 'Verified similarity in the metric of the profile (of a distance d it is 1 / (1 + d)), unless the recipe verifies by estimate';
COMMENT ON COLUMN nearsim.pairs.intersection_size IS 'How many features both have; NULL where the metric counts none';
COMMENT ON COLUMN nearsim.pairs.union_size IS 'How many features either has; NULL where the metric counts none';
COMMENT ON COLUMN nearsim.pairs.distance IS 'Verified distance; NULL where the metric measures none';
