-- Stored pairs by similarity, in equal steps from a least one to 1 counted from 0: those whose texts have the same numbers, and
-- the others. Reads all pairs, and all signatures twice.
SELECT greatest(least(width_bucket(pair.similarity, %(least)s, 1, %(steps)s), %(steps)s), 1) - 1 AS step,
    count(*) FILTER (WHERE l.numbers_digest = r.numbers_digest), count(*) FILTER (WHERE l.numbers_digest <> r.numbers_digest)
FROM {similar_pair} AS pair
JOIN {signature} AS l ON l.doc_id = pair.left_id
JOIN {signature} AS r ON r.doc_id = pair.right_id
GROUP BY step
