-- Some pairs of one generation that the other has not, chosen by a hash of the heads that make them pairs: whether they are
-- twins, their similarity and shared bands, for how many pairs of documents they stand, and two documents. A class of the
-- left head is looked for that lacks something of the right head, then what it lacks. Relies on the indexes of diff_class
-- and of the pairs. After create_diff_common.
WITH common AS (
    SELECT {left} AS left_id, {right} AS right_id, sum(pairs) AS pairs FROM diff_common GROUP BY 1, 2
), tie AS MATERIALIZED (
    SELECT tie.left_id, tie.right_id, tie.similarity, tie.shared_bands, tie.pairs - coalesce(common.pairs, 0) AS pairs
    FROM (
        SELECT pair.left_id, pair.right_id, pair.similarity, pair.shared_bands, l.documents * r.documents AS pairs
        FROM {pair} AS pair
        JOIN {family} AS l ON l.head_id = pair.left_id
        JOIN {family} AS r ON r.head_id = pair.right_id
        UNION ALL
        SELECT head_id, head_id, 1, NULL, documents * (documents - 1) / 2 FROM {family} WHERE documents > 1
    ) AS tie
    LEFT JOIN common USING (left_id, right_id)
    WHERE tie.pairs > coalesce(common.pairs, 0)
    ORDER BY hashint8extended(tie.left_id, tie.right_id), tie.left_id, tie.right_id
    LIMIT %(amount)s
)
SELECT tie.left_id = tie.right_id, tie.similarity, tie.shared_bands, tie.pairs, one.doc_id, other.doc_id
FROM tie
CROSS JOIN LATERAL (
    SELECT class.* FROM diff_class AS class
    WHERE class.{head} = tie.left_id
        AND (SELECT documents FROM {family} WHERE head_id = tie.right_id) >
            (SELECT coalesce(sum(twin.documents), 0) FROM diff_class AS twin
                WHERE twin.{head} = tie.right_id AND twin.{other_head} = class.{other_head})
            + (SELECT coalesce(sum(paired.documents), 0)
                FROM (
                    SELECT right_id FROM {other_pair} WHERE left_id = class.{other_head}
                    UNION ALL SELECT left_id FROM {other_pair} WHERE right_id = class.{other_head}
                ) AS partner (head_id)
                JOIN diff_class AS paired
                    ON paired.{head} = tie.right_id AND paired.{other_head} = partner.head_id)
    ORDER BY class.doc_id
    LIMIT 1
) AS one
CROSS JOIN LATERAL (
    SELECT CASE WHEN class.doc_id = one.doc_id THEN class.last_id ELSE class.doc_id END AS doc_id
    FROM diff_class AS class
    WHERE class.{head} = tie.right_id
        AND (class.doc_id <> one.doc_id OR one.{other_head} IS NULL AND one.documents > 1)
        AND (class.{other_head} = one.{other_head}) IS NOT TRUE
        AND NOT EXISTS (
            SELECT FROM {other_pair} AS pair
            WHERE pair.left_id = least(one.{other_head}, class.{other_head})
                AND pair.right_id = greatest(one.{other_head}, class.{other_head})
        )
    ORDER BY class.doc_id
    LIMIT 1
) AS other
ORDER BY hashint8extended(tie.left_id, tie.right_id), tie.left_id, tie.right_id
