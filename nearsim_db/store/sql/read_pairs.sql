-- All pairs by external id, twins expanded: every twin of the left with every twin of the right, and twins with each
-- other at similarity 1, with counts or a distance where the metric has any. The document with the smaller doc_id is the
-- left one.
SELECT a.external_id, b.external_id, p.similarity, p.intersection_size, p.union_size, p.estimate, p.shared_bands,
    p.distance
FROM (
    SELECT least(l.doc_id, r.doc_id) AS left_id, greatest(l.doc_id, r.doc_id) AS right_id,
        pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, pair.distance
    FROM {similar_pair} AS pair
    JOIN {signature} AS l ON l.head_id = pair.left_id
    JOIN {signature} AS r ON r.head_id = pair.right_id
    WHERE pair.similarity >= %(min_similarity)s
    UNION ALL
    SELECT l.doc_id, r.doc_id, 1, CASE WHEN own.metric = 'jaccard' THEN l.feature_count END,
        CASE WHEN own.metric = 'jaccard' THEN l.feature_count END, 1, %(bands)s,
        CASE WHEN own.metric = 'euclidean' THEN 0 END
    FROM {signature} AS r JOIN {signature} AS l ON l.head_id = r.head_id AND l.doc_id < r.doc_id
    CROSS JOIN (
        SELECT nearsim.metric_of(recipe) AS metric FROM nearsim.generation WHERE generation_id = {generation_id} OFFSET 0
    ) AS own
    WHERE r.head_id <> r.doc_id
) AS p
JOIN nearsim.document AS a ON a.doc_id = p.left_id
JOIN nearsim.document AS b ON b.doc_id = p.right_id
