-- Documents paired with one, twins expanded on both sides, the most similar first. Twins have counts or a distance where
-- the metric has any.
WITH me AS (SELECT doc_id, head_id, feature_count FROM {signature} WHERE doc_id = %(doc_id)s)
SELECT document.external_id, document.title, p.similarity, p.intersection_size, p.union_size, p.estimate, p.shared_bands,
    p.distance
FROM (
    SELECT other.doc_id, pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands,
        pair.distance
    FROM me JOIN {similar_pair} AS pair ON pair.left_id = me.head_id
    JOIN {signature} AS other ON other.head_id = pair.right_id
    UNION ALL
    SELECT other.doc_id, pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands,
        pair.distance
    FROM me JOIN {similar_pair} AS pair ON pair.right_id = me.head_id
    JOIN {signature} AS other ON other.head_id = pair.left_id
    UNION ALL
    SELECT twin.doc_id, 1, CASE WHEN own.metric = 'jaccard' THEN me.feature_count END,
        CASE WHEN own.metric = 'jaccard' THEN me.feature_count END, 1, %(bands)s,
        CASE WHEN own.metric = 'euclidean' THEN 0 END
    FROM me JOIN {signature} AS twin ON twin.head_id = me.head_id AND twin.doc_id <> me.doc_id
    CROSS JOIN (
        SELECT nearsim.metric_of(recipe) AS metric FROM nearsim.generation WHERE generation_id = {generation_id} OFFSET 0
    ) AS own
) AS p
JOIN nearsim.document USING (doc_id)
WHERE p.similarity >= %(min_similarity)s
ORDER BY p.similarity DESC, document.doc_id
