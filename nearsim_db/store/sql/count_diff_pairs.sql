-- Pairs of documents, twins expanded: those of the live generation, those of the new one, those that both have, and those of
-- these whose similarity differs. After create_diff_common.
SELECT
    (SELECT coalesce(sum(l.documents * r.documents), 0)
        FROM {live_pair} AS pair
        JOIN diff_live AS l ON l.head_id = pair.left_id
        JOIN diff_live AS r ON r.head_id = pair.right_id)
    + (SELECT coalesce(sum(documents * (documents - 1) / 2), 0) FROM diff_live),
    (SELECT coalesce(sum(l.documents * r.documents), 0)
        FROM {new_pair} AS pair
        JOIN diff_new AS l ON l.head_id = pair.left_id
        JOIN diff_new AS r ON r.head_id = pair.right_id)
    + (SELECT coalesce(sum(documents * (documents - 1) / 2), 0) FROM diff_new),
    coalesce(sum(pairs), 0),
    coalesce(sum(pairs) FILTER (WHERE abs(live_similarity - new_similarity) > {tolerance}), 0)
FROM diff_common
