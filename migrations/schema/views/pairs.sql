-- All stored pairs with twins expanded; the document with the smaller doc_id is on the left. The first SELECT has the pairs of
-- documents in the same order as their heads, the second SELECT the pairs in which a twin of the right head precedes the left
-- document, and the third SELECT the pairs of twins. The indexes of signatures on (head_id, doc_id) find all documents of a
-- head. If a condition names the document on one side, by number or by external_id, this document is looked up first, and then
-- its signature, its pairs and the other documents by keys and indexes. Without such a condition there are hash joins. The
-- recipe is read in separate subqueries, which run once for each generation instead of once for each row.
CREATE VIEW nearsim.stored_pairs WITH (security_invoker = true) AS
SELECT live.collection, live.profile, live.collection_id, live.generation_id, found.left_id, found.right_id,
    found.left_external_id, found.right_external_id, found.left_title, found.right_title, found.left_source, found.right_source,
    found.left_published_at, found.right_published_at, found.similarity, found.intersection_size, found.union_size,
    found.estimate, found.shared_bands, found.are_twins, found.are_heads, found.numbers_differ,
    (SELECT verdict.verdict FROM nearsim.verdict WHERE verdict.left_id = found.left_id AND verdict.right_id = found.right_id
        AND verdict.undone_at IS NULL) AS verdict,
    found.verified_at, found.distance, found.verified, found.in_review,
    found.left_in_right, found.right_in_left, found.longest_passage
FROM nearsim.live_generations AS live
CROSS JOIN LATERAL (
    SELECT pair.generation_id, l.doc_id AS left_id, r.doc_id AS right_id, a.external_id AS left_external_id,
        b.external_id AS right_external_id, a.title AS left_title, b.title AS right_title, a.source AS left_source,
        b.source AS right_source, a.published_at AS left_published_at, b.published_at AS right_published_at,
        pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, false AS are_twins,
        -- Without CASE, the planner would expect very few rows.
        CASE WHEN l.doc_id = l.head_id THEN r.doc_id = r.head_id ELSE false END AS are_heads,
        l.numbers_digest <> r.numbers_digest AS numbers_differ, pair.verified_at, pair.distance,
        (SELECT nearsim.is_exact(live.recipe)) AS verified, pair.in_review,
        CASE WHEN (SELECT nearsim.is_exact(live.recipe) AND nearsim.metric_of(live.recipe) = 'containment')
            THEN CAST(pair.intersection_size AS double precision) / l.feature_count END AS left_in_right,
        CASE WHEN (SELECT nearsim.is_exact(live.recipe) AND nearsim.metric_of(live.recipe) = 'containment')
            THEN CAST(pair.intersection_size AS double precision) / r.feature_count END AS right_in_left,
        pair.longest_passage
    FROM nearsim.similar_pair AS pair
    JOIN nearsim_index.signed AS l ON l.generation_id = pair.generation_id AND l.head_id = pair.left_id
    JOIN nearsim_index.signed AS r ON r.generation_id = pair.generation_id AND r.head_id = pair.right_id
    JOIN nearsim.document AS a ON a.doc_id = l.doc_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    WHERE pair.generation_id = live.generation_id AND l.doc_id < r.doc_id
    UNION ALL
    SELECT pair.generation_id, l.doc_id, r.doc_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source,
        a.published_at, b.published_at, pair.similarity, pair.intersection_size, pair.union_size, pair.estimate,
        pair.shared_bands, false, false, l.numbers_digest <> r.numbers_digest, pair.verified_at, pair.distance,
        (SELECT nearsim.is_exact(live.recipe)), pair.in_review,
        CASE WHEN (SELECT nearsim.is_exact(live.recipe) AND nearsim.metric_of(live.recipe) = 'containment')
            THEN CAST(pair.intersection_size AS double precision) / l.feature_count END,
        CASE WHEN (SELECT nearsim.is_exact(live.recipe) AND nearsim.metric_of(live.recipe) = 'containment')
            THEN CAST(pair.intersection_size AS double precision) / r.feature_count END,
        pair.longest_passage
    FROM nearsim.similar_pair AS pair
    JOIN nearsim_index.signed AS l ON l.generation_id = pair.generation_id AND l.head_id = pair.right_id
    JOIN nearsim_index.signed AS r ON r.generation_id = pair.generation_id AND r.head_id = pair.left_id AND r.doc_id <> r.head_id
    JOIN nearsim.document AS a ON a.doc_id = l.doc_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    WHERE pair.generation_id = live.generation_id AND l.doc_id < r.doc_id
    UNION ALL
    SELECT r.generation_id, l.doc_id, r.doc_id, a.external_id, b.external_id, a.title, b.title, a.source, b.source,
        a.published_at, b.published_at, CAST(1 AS double precision),
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) IN ('jaccard', 'containment') THEN r.feature_count END,
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) IN ('jaccard', 'containment') THEN r.feature_count END,
        CAST(1 AS real), CASE WHEN (SELECT nearsim.metric_of(live.recipe)) <> 'containment' THEN live.bands END,
        true, false, l.numbers_digest <> r.numbers_digest, CAST(NULL AS timestamptz),
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'euclidean' THEN CAST(0 AS double precision) END, true, false,
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'containment' THEN CAST(1 AS double precision) END,
        CASE WHEN (SELECT nearsim.metric_of(live.recipe)) = 'containment' THEN CAST(1 AS double precision) END,
        CAST(NULL AS integer)
    FROM nearsim_index.signed AS r
    JOIN nearsim_index.signed AS l ON l.generation_id = r.generation_id AND l.head_id = r.head_id AND l.doc_id < r.doc_id
    JOIN nearsim.document AS a ON a.doc_id = l.doc_id AND a.collection_id = live.collection_id
    JOIN nearsim.document AS b ON b.doc_id = r.doc_id AND b.collection_id = live.collection_id
    WHERE r.generation_id = live.generation_id AND r.head_id <> r.doc_id
) AS found
WHERE found.generation_id = live.generation_id;

-- Because of the join with document, a condition on left_id alone selects the document first, so that only its collection is
-- searched.
CREATE VIEW nearsim.pairs WITH (security_invoker = true) AS
SELECT stored.collection, stored.profile, stored.collection_id, stored.generation_id, stored.left_id, stored.right_id,
    stored.left_external_id, stored.right_external_id, stored.left_title, stored.right_title, stored.left_source,
    stored.right_source, stored.left_published_at, stored.right_published_at, stored.similarity, stored.intersection_size,
    stored.union_size, stored.estimate, stored.shared_bands, stored.are_twins, stored.are_heads, stored.numbers_differ,
    stored.verdict, stored.verified_at, stored.distance, stored.verified, stored.left_in_right, stored.right_in_left,
    stored.longest_passage
FROM nearsim.stored_pairs AS stored
JOIN nearsim.document AS l ON l.doc_id = stored.left_id AND l.collection_id = stored.collection_id
WHERE NOT stored.in_review;

CREATE VIEW nearsim.review_pairs WITH (security_invoker = true) AS
SELECT collection, profile, collection_id, generation_id, left_id, right_id, left_external_id, right_external_id, left_title,
    right_title, left_source, right_source, left_published_at, right_published_at, similarity, intersection_size,
    union_size, estimate, shared_bands, are_twins, are_heads, numbers_differ, verdict, verified_at, distance, verified,
    left_in_right, right_in_left, longest_passage
FROM nearsim.stored_pairs WHERE in_review;

COMMENT ON VIEW nearsim.stored_pairs IS
    'Internal (used by the views pairs and review_pairs): pairs that count, and pairs to be reviewed';
COMMENT ON VIEW nearsim.review_pairs IS
    'Pairs for a person to look at, with a similarity between match.review and the threshold. They connect no clusters, cause no removal, and are not counted as pairs. The columns are those of the view pairs';
COMMENT ON VIEW nearsim.pairs IS
    'Pairs of documents, including documents with the same features; the document with the smaller doc_id is on the left';
COMMENT ON COLUMN nearsim.pairs.generation_id IS 'The live generation of the profile';
COMMENT ON COLUMN nearsim.pairs.left_id IS 'doc_id of the left document, the smaller of the two';
COMMENT ON COLUMN nearsim.pairs.left_source IS 'Source of the left document; NULL if it has none';
COMMENT ON COLUMN nearsim.pairs.right_source IS 'Source of the right document; NULL if it has none';
COMMENT ON COLUMN nearsim.pairs.left_published_at IS 'When the left document was published; NULL if it has no date';
COMMENT ON COLUMN nearsim.pairs.right_published_at IS 'When the right document was published; NULL if it has no date';
COMMENT ON COLUMN nearsim.pairs.similarity IS
    'Similarity in the profile''s metric, or 1 / (1 + d) for a distance d; an estimate if verified is false';
COMMENT ON COLUMN nearsim.pairs.intersection_size IS
    'Number of features in both documents, or of equal values of the sketches if verified is false; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.pairs.union_size IS
    'Number of features in either document, or of values of a sketch if verified is false; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.pairs.shared_bands IS
    'Number of bands in which the two sketches are equal; NULL for documents with the same features if the metric is containment, where they share all bands and the number of bands depends on the length of the text';
COMMENT ON COLUMN nearsim.pairs.are_heads IS
    'Whether each of the two is the first document with its features; with WHERE are_heads, every distinct text counts once';
COMMENT ON COLUMN nearsim.pairs.verified_at IS
    'When the similarity was computed; NULL for documents with the same features';
COMMENT ON COLUMN nearsim.pairs.distance IS
    'Distance; an estimate if verified is false; NULL if the metric is not a distance';
COMMENT ON COLUMN nearsim.pairs.verified IS
    'Whether the similarity was computed from the features, which is also true for documents with the same features; false if it is an estimate from the sketches (match.verify of the recipe decides)';
COMMENT ON COLUMN nearsim.pairs.left_in_right IS
    'Fraction of the features of the left document that the right document has; NULL unless the metric is containment and the similarity is verified';
COMMENT ON COLUMN nearsim.pairs.longest_passage IS
    'Number of words in the longest run of words that both texts have, not counting words that the recipe leaves out; NULL for documents with the same features, and unless the metric is containment and the similarity is verified';
COMMENT ON COLUMN nearsim.pairs.right_in_left IS
    'Fraction of the features of the right document that the left document has; NULL unless the metric is containment and the similarity is verified';
COMMENT ON COLUMN nearsim.stored_pairs.in_review IS 'Whether the pair is below the threshold and is only stored for a person to look at';
