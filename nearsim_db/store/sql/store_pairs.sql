-- A pair goes in only while both signatures still are the ones it was verified under; they are held until commit.
INSERT INTO {similar_pair}
    (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size)
SELECT found.left_id, found.right_id, found.shared_bands, found.estimate, found.similarity,
    found.intersection_size, found.union_size
FROM found
JOIN {signature} AS a ON a.doc_id = found.left_id AND a.feature_digest = found.left_digest
JOIN {signature} AS b ON b.doc_id = found.right_id AND b.feature_digest = found.right_digest
FOR KEY SHARE OF a, b
ON CONFLICT (left_id, right_id) DO UPDATE SET
    shared_bands = excluded.shared_bands, estimate = excluded.estimate, similarity = excluded.similarity,
    intersection_size = excluded.intersection_size, union_size = excluded.union_size, verified_at = now()
