-- A pair goes in only while both its documents still are heads with the digests that it was verified under; they are held
-- until commit, in the order of doc_id. A pair that is there already is the same: the digests decide it.
WITH held AS MATERIALIZED (
    SELECT doc_id, feature_digest FROM {signature}
    WHERE doc_id = ANY(CAST(%(heads)s AS bigint[])) AND head_id = doc_id
    ORDER BY doc_id FOR KEY SHARE
)
INSERT INTO {similar_pair} (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size)
SELECT left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size
FROM unnest(
    CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[]), CAST(%(shared_bands)s AS smallint[]),
    CAST(%(estimates)s AS real[]), CAST(%(similarities)s AS double precision[]), CAST(%(intersections)s AS integer[]),
    CAST(%(unions)s AS integer[]), CAST(%(left_digests)s AS uuid[]), CAST(%(right_digests)s AS uuid[])
) AS found (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, left_digest,
    right_digest)
JOIN held AS a ON a.doc_id = left_id AND a.feature_digest = left_digest
JOIN held AS b ON b.doc_id = right_id AND b.feature_digest = right_digest
ORDER BY left_id, right_id
ON CONFLICT (left_id, right_id) DO NOTHING
RETURNING left_id, right_id
