-- The pairs whose right end, or with `both` either end, is one of some documents, with all that is stored of them.
-- Relies on the key and on the index on right_id.
SELECT left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance
FROM {similar_pair} WHERE right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
UNION
SELECT left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance
FROM {similar_pair} WHERE %(both)s AND left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
