-- Documents paired with one, twins expanded on both sides, the most similar first.
WITH me AS (SELECT doc_id, head_id, feature_count FROM {signature} WHERE doc_id = %(doc_id)s)
SELECT document.external_id, document.title, p.similarity, p.intersection_size, p.union_size, p.estimate, p.shared_bands
FROM (
    SELECT other.doc_id, pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands
    FROM me JOIN {similar_pair} AS pair ON pair.left_id = me.head_id
    JOIN {signature} AS other ON other.head_id = pair.right_id
    UNION ALL
    SELECT other.doc_id, pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands
    FROM me JOIN {similar_pair} AS pair ON pair.right_id = me.head_id
    JOIN {signature} AS other ON other.head_id = pair.left_id
    UNION ALL
    SELECT twin.doc_id, 1, me.feature_count, me.feature_count, 1, %(bands)s
    FROM me JOIN {signature} AS twin ON twin.head_id = me.head_id AND twin.doc_id <> me.doc_id
) AS p
JOIN nearsim.document USING (doc_id)
WHERE p.similarity >= %(min_similarity)s
ORDER BY p.similarity DESC, document.doc_id
