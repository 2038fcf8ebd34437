-- One stored pair of each step of similarity from a least one to 1, chosen by a hash of its documents, with a cluster it is in.
-- Reads all pairs, and the rest by key.
SELECT pair.left_id, pair.right_id, pair.similarity, pair.estimate, pair.shared_bands, pair.intersection_size,
    pair.union_size, l.numbers_digest <> r.numbers_digest, member.cluster_id
FROM (
    SELECT min(ARRAY[hashint8extended(left_id, right_id), left_id, right_id]) AS chosen
    FROM {similar_pair}
    GROUP BY least(width_bucket(similarity, %(least)s, 1, %(steps)s), %(steps)s)
) AS step
JOIN {similar_pair} AS pair ON pair.left_id = step.chosen[2] AND pair.right_id = step.chosen[3]
JOIN {signature} AS l ON l.doc_id = pair.left_id
JOIN {signature} AS r ON r.doc_id = pair.right_id
LEFT JOIN {cluster_member} AS member ON member.doc_id = pair.left_id
ORDER BY pair.similarity, pair.left_id, pair.right_id
