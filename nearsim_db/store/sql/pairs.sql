-- name: store_pairs
-- Put pairs into the ledger. A pair that is there already is the same: the digests of its documents decide it. In the
-- order of the key, so that two who store the same pairs do not deadlock. Arrays of what the metric does not tell are NULL.
INSERT INTO {similar_pair}
    (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance)
SELECT left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance
FROM unnest(
    CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[]), CAST(%(shared_bands)s AS smallint[]),
    CAST(%(estimates)s AS real[]), CAST(%(similarities)s AS double precision[]), CAST(%(intersections)s AS integer[]),
    CAST(%(unions)s AS integer[]), CAST(%(distances)s AS double precision[])
) AS found (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance)
ORDER BY left_id, right_id
ON CONFLICT (left_id, right_id) DO NOTHING
RETURNING left_id, right_id

-- name: hold_heads
-- Those of some documents that are heads, with their digests; they stay it until commit. Locked in the order of doc_id.
-- Relies on the leaf's key.
SELECT doc_id, feature_digest FROM {signature}
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id = doc_id
ORDER BY doc_id FOR KEY SHARE

-- name: finish_pairs
-- After the bulk load of pairs: the way from the right document, and the cascade from signatures.
CREATE INDEX ON {similar_pair} (right_id);
ALTER TABLE {similar_pair} ADD FOREIGN KEY (left_id) REFERENCES {signature} (doc_id) ON DELETE CASCADE;
ALTER TABLE {similar_pair} ADD FOREIGN KEY (right_id) REFERENCES {signature} (doc_id) ON DELETE CASCADE

-- name: delete_pairs_of
-- Pairs of documents that are heads no longer.
DELETE FROM {similar_pair}
WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: read_pairs
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

-- name: read_similar
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
