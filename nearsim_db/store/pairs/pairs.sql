-- name: store_pairs
-- Insert verified pairs in the order of the key, so that sessions that insert the same pairs do not deadlock. A pair that
-- exists is identical, because the digests of its documents determine it. Columns that the metric does not define are NULL.
-- Returns the new pairs, without pairs to be reviewed. Relies on the key.
WITH stored AS (
    INSERT INTO {similar_pair_leaf} (generation_id, left_id, right_id, shared_bands, estimate, similarity, intersection_size,
        union_size, distance, in_review, by_passage, longest_passage)
    SELECT {generation_id}, left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance,
        in_review, coalesce(by_passage, false), longest_passage
    FROM unnest(
        CAST(%(left_id)s AS bigint[]), CAST(%(right_id)s AS bigint[]), CAST(%(shared_bands)s AS smallint[]),
        CAST(%(estimate)s AS real[]), CAST(%(similarity)s AS double precision[]), CAST(%(intersection_size)s AS integer[]),
        CAST(%(union_size)s AS integer[]), CAST(%(distance)s AS double precision[]), CAST(%(in_review)s AS boolean[]),
        CAST(%(by_passage)s AS boolean[]), CAST(%(longest_passage)s AS integer[])
    ) AS verified (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance, in_review,
        by_passage, longest_passage)
    ORDER BY left_id, right_id
    ON CONFLICT (generation_id, left_id, right_id) DO NOTHING
    RETURNING left_id, right_id, in_review
)
SELECT left_id, right_id FROM stored WHERE NOT in_review

-- name: find_stored_pairs
-- Places, from 0, of the pairs that are stored already. LATERAL with LIMIT looks up each pair by the key, however many pairs
-- are stored. Relies on the key.
SELECT verified.place - 1
FROM unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) WITH ORDINALITY
    AS verified (left_id, right_id, place)
CROSS JOIN LATERAL (
    SELECT FROM {stored_pair} AS pair
    WHERE pair.left_id = verified.left_id AND pair.right_id = verified.right_id LIMIT 1
) AS stored

-- name: lock_heads
-- Lock those documents that are heads, in doc_id order, until the transaction ends, and return their digests. Relies on the
-- leaf's key.
SELECT doc_id, feature_digest FROM {signature_leaf}
WHERE {of_generation} AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id = doc_id
ORDER BY doc_id FOR KEY SHARE

-- name: delete_pairs_of
-- Delete the pairs of documents that are no longer heads. Relies on the key and on the index on right_id.
DELETE FROM {similar_pair_leaf}
WHERE {of_view}
    AND (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))

-- name: read_pairs
-- Pairs with their external ids, twins expanded; with `review`, the pairs to be reviewed instead. They can be limited to a
-- maximum similarity, to pairs with different numbers, to pairs without a verdict or decision, to a sample by a hash of the
-- doc_ids, and to a maximum number. If the number of bands of a sketch depends on the text, twins share all bands of their
-- sketch. Relies on the indexes of stored_pairs, on the leaf's key, and on verdict_one_current and review_pair.
SELECT similarity, intersection_size, union_size, estimate,
    coalesce(shared_bands, (SELECT CAST(least(octet_length(sketch) / 8 - 1, 32767) AS smallint) FROM {signature} AS signature
        WHERE signature.doc_id = pair.left_id)),
    distance, verified, left_external_id, right_external_id, left_title, right_title, left_in_right, right_in_left
FROM nearsim.stored_pairs AS pair
WHERE {of_view} AND in_review = %(review)s AND similarity >= %(min_similarity)s
    AND (CAST(%(max_similarity)s AS double precision) IS NULL OR similarity <= %(max_similarity)s)
    AND (NOT %(numbers_differ)s OR numbers_differ)
    AND (NOT %(unreviewed)s OR verdict IS NULL AND NOT EXISTS (
        SELECT FROM nearsim.review WHERE review.left_id = pair.left_id AND review.right_id = pair.right_id
            AND decided_at IS NOT NULL AND undone_at IS NULL))
ORDER BY CASE WHEN CAST(%(sample)s AS bigint) IS NOT NULL THEN hashint8extended(left_id, right_id) END
LIMIT least(%(sample)s, %(max_pairs)s)

-- name: set_nested_loops
-- Turn nested loops of the planner on or off until the transaction ends.
SELECT set_config('enable_nestloop', %(setting)s, true)

-- name: bound_pairs
-- The number of pairs in a range of similarities, twins expanded, as in read_pairs; the lowest similarity of the `max_pairs`
-- most similar pairs, NULL if there are fewer pairs; and the highest similarity. Reads signatures and pairs of heads; relies
-- on document_collection_doc.
WITH twins AS MATERIALIZED (
    SELECT signed.head_id, count(*) AS members FROM {signed} AS signed JOIN nearsim.document USING (doc_id)
    WHERE document.collection_id = %(collection_id)s GROUP BY signed.head_id
)
SELECT CAST(coalesce(sum(pairs), 0) AS bigint), max(similarity) FILTER (WHERE reached >= %(max_pairs)s), max(similarity)
FROM (
    SELECT similarity, sum(pairs) AS pairs, sum(sum(pairs)) OVER (ORDER BY similarity DESC) AS reached
    FROM (
        SELECT pair.similarity, l.members * r.members AS pairs FROM {stored_pair} AS pair
        JOIN twins AS l ON l.head_id = pair.left_id
        JOIN twins AS r ON r.head_id = pair.right_id
        WHERE pair.in_review = %(review)s
        UNION ALL
        SELECT 1, members * (members - 1) / 2 FROM twins WHERE members > 1 AND NOT %(review)s
    ) AS expanded
    WHERE similarity >= %(min_similarity)s
        AND (CAST(%(max_similarity)s AS double precision) IS NULL OR similarity <= %(max_similarity)s)
    GROUP BY similarity
) AS step

-- name: read_similar
-- The documents that are paired with a document, twins expanded on both sides, the most similar first, up to a maximum
-- number. With a direction: the documents that it contains, or the documents that contain it, by the fraction of the
-- contained document's features, which for Jaccard follows from the counts. Relies on the same indexes as similar_to.
SELECT similarity, intersection_size, union_size, estimate, shared_bands, distance, verified, external_id, title,
    decisive.left_in_right, decisive.right_in_left
FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
CROSS JOIN LATERAL {pairs_of}(generation.generation_id, %(doc_id)s, collection_id, NULL, 0, generation.bands, recipe,
    CASE WHEN CAST(%(direction)s AS text) IS NULL THEN CAST(%(max_matches)s AS integer) END) AS match
LEFT JOIN {signature} AS asked ON asked.doc_id = %(doc_id)s AND CAST(%(direction)s AS text) IS NOT NULL
    AND nearsim.metric_of(recipe) = 'jaccard'
CROSS JOIN LATERAL (
    SELECT coalesce(match.left_in_right, CAST(intersection_size AS double precision) / asked.feature_count),
        coalesce(match.right_in_left,
            CAST(intersection_size AS double precision) / (intersection_size + union_size - asked.feature_count))
) AS counted (left_in_right, right_in_left)
CROSS JOIN LATERAL (
    SELECT counted.*,
        CASE %(direction)s WHEN 'contains' THEN counted.right_in_left WHEN 'contained_in' THEN counted.left_in_right
            ELSE similarity END
) AS decisive (left_in_right, right_in_left, share)
WHERE generation.generation_id = {generation_id} AND decisive.share >= %(min_similarity)s
ORDER BY decisive.share DESC, match.doc_id LIMIT %(max_matches)s

-- name: look_up_pairs
-- What the index stores about pairs of documents, named by external ids, in the order of the query: whether both are signed,
-- whether they are a pair, whether they are in the same cluster; their similarity, NULL unless the pair is stored (perhaps
-- only to be reviewed); the cluster of the left document or, if it has none, of the right one; and their doc_ids. Relies on
-- document_external_id_key and on the leaves' keys.
SELECT l.doc_id IS NOT NULL AND r.doc_id IS NOT NULL,
    coalesce(l.head_id = r.head_id, false) OR coalesce(NOT pair.in_review, false),
    coalesce(left_member.cluster_id = right_member.cluster_id, false),
    CASE WHEN l.head_id = r.head_id THEN 1 ELSE pair.similarity END,
    coalesce(left_member.cluster_id, right_member.cluster_id), a.doc_id, b.doc_id
FROM unnest(CAST(%(left_ids)s AS text[]), CAST(%(right_ids)s AS text[])) WITH ORDINALITY
    AS query (left_id, right_id, place)
LEFT JOIN nearsim.document AS a ON a.collection_id = %(collection_id)s AND a.external_id = query.left_id
LEFT JOIN nearsim.document AS b ON b.collection_id = %(collection_id)s AND b.external_id = query.right_id
LEFT JOIN {signature} AS l ON l.doc_id = a.doc_id
LEFT JOIN {signature} AS r ON r.doc_id = b.doc_id
LEFT JOIN {stored_pair} AS pair
    ON pair.left_id = least(l.head_id, r.head_id) AND pair.right_id = greatest(l.head_id, r.head_id)
LEFT JOIN {cluster_member} AS left_member ON left_member.doc_id = a.doc_id
LEFT JOIN {cluster_member} AS right_member ON right_member.doc_id = b.doc_id
ORDER BY query.place

-- name: list_sampled_pairs
-- Up to `sample` pairs of heads, in the order of their table.
SELECT left_id, right_id FROM {similar_pair} AS pair LIMIT %(sample)s

-- name: sample_pairs
-- Counts in a sample of up to `sample` pairs of heads: all pairs, pairs with different numbers, and pairs within one source;
-- the number of sources of up to `sample` documents; and the mean number of features of up to `sample` signatures. Reads
-- pairs and signatures in the order of their tables. Relies on signature_pkey, document_pkey and document_collection_doc.
SELECT count(*), count(*) FILTER (WHERE a.numbers_digest <> b.numbers_digest), count(*) FILTER (WHERE l.source = r.source),
    (SELECT count(DISTINCT source) FROM (
        SELECT source FROM nearsim.document
        WHERE collection_id = %(collection_id)s ORDER BY doc_id LIMIT %(sample)s) AS listed),
    (SELECT coalesce(CAST(avg(feature_count) AS double precision), 0) FROM (
        SELECT feature_count FROM {signature} AS signature LIMIT %(sample)s) AS signed)
FROM (SELECT left_id, right_id FROM {similar_pair} AS pair LIMIT %(sample)s) AS pair
JOIN {signature} AS a ON a.doc_id = pair.left_id JOIN {signature} AS b ON b.doc_id = pair.right_id
JOIN nearsim.document AS l ON l.doc_id = pair.left_id JOIN nearsim.document AS r ON r.doc_id = pair.right_id
