-- The most similar stored pairs whose texts have different numbers, with a cluster each is in. Reads all pairs and signatures.
SELECT pair.left_id, pair.right_id, pair.similarity, pair.estimate, pair.shared_bands, pair.intersection_size,
    pair.union_size, true, member.cluster_id
FROM (
    SELECT found.* FROM {similar_pair} AS found
    JOIN {signature} AS l ON l.doc_id = found.left_id
    JOIN {signature} AS r ON r.doc_id = found.right_id
    WHERE l.numbers_digest <> r.numbers_digest
    ORDER BY found.similarity DESC, found.left_id, found.right_id LIMIT %(amount)s
) AS pair
LEFT JOIN {cluster_member} AS member ON member.doc_id = pair.left_id
ORDER BY pair.similarity DESC, pair.left_id, pair.right_id
