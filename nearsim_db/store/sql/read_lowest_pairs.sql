-- The least similar stored pairs, with a cluster each is in. Reads all pairs, and the rest by key.
SELECT pair.left_id, pair.right_id, pair.similarity, pair.estimate, pair.shared_bands, pair.intersection_size,
    pair.union_size, l.numbers_digest <> r.numbers_digest, member.cluster_id
FROM (SELECT * FROM {similar_pair} ORDER BY similarity, left_id, right_id LIMIT %(amount)s) AS pair
JOIN {signature} AS l ON l.doc_id = pair.left_id
JOIN {signature} AS r ON r.doc_id = pair.right_id
LEFT JOIN {cluster_member} AS member ON member.doc_id = pair.left_id
ORDER BY pair.similarity, pair.left_id, pair.right_id
