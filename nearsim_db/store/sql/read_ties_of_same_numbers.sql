-- The same between equal numbers only: the first of the twins of one number is tied to the others, and to the first of
-- that number among those paired with its head. Pins are ties whatever the numbers. Relies on the same.
WITH class AS MATERIALIZED (
    SELECT mine.head_id, mine.numbers_digest, mine.doc_ids, first.doc_id AS first_id
    FROM (
        SELECT head_id, numbers_digest, array_agg(doc_id) AS doc_ids FROM {signature}
        WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id IS NOT NULL
        GROUP BY head_id, numbers_digest
    ) AS mine
    CROSS JOIN LATERAL (
        SELECT doc_id FROM {signature} WHERE doc_id = mine.head_id AND numbers_digest = mine.numbers_digest
        UNION ALL
        (SELECT doc_id FROM {signature}
        WHERE head_id = mine.head_id AND head_id <> doc_id AND numbers_digest = mine.numbers_digest
        ORDER BY doc_id LIMIT 1)
        ORDER BY doc_id LIMIT 1
    ) AS first
), other AS (
    SELECT class.first_id, class.numbers_digest, pair.right_id AS head_id
    FROM class JOIN {similar_pair} AS pair ON pair.left_id = class.head_id WHERE class.first_id = ANY(class.doc_ids)
    UNION ALL
    SELECT class.first_id, class.numbers_digest, pair.left_id
    FROM class JOIN {similar_pair} AS pair ON pair.right_id = class.head_id WHERE class.first_id = ANY(class.doc_ids)
)
SELECT other.first_id, 0, int8send(first.doc_id)
FROM other
CROSS JOIN LATERAL (
    SELECT doc_id FROM {signature} WHERE doc_id = other.head_id AND numbers_digest = other.numbers_digest
    UNION ALL
    (SELECT doc_id FROM {signature}
    WHERE head_id = other.head_id AND head_id <> doc_id AND numbers_digest = other.numbers_digest
    ORDER BY doc_id LIMIT 1)
    ORDER BY doc_id LIMIT 1
) AS first
UNION ALL
SELECT class.first_id, 1, string_agg(int8send(twin.doc_id), '')
FROM class
JOIN {signature} AS twin
    ON twin.head_id = class.head_id AND twin.head_id <> twin.doc_id AND twin.numbers_digest = class.numbers_digest
WHERE twin.doc_id <> class.first_id AND class.first_id = ANY(class.doc_ids)
GROUP BY class.first_id
UNION ALL
SELECT class.first_id, 1, int8send(mine.doc_id)
FROM class CROSS JOIN LATERAL unnest(class.doc_ids) AS mine (doc_id)
WHERE mine.doc_id <> class.first_id
UNION ALL
SELECT left_id, 2, int8send(right_id) FROM nearsim.verdict
WHERE (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))
    AND collection_id = %(collection_id)s AND verdict = 'pinned' AND undone_at IS NULL
    AND EXISTS (SELECT FROM {signature} WHERE doc_id = left_id)
    AND EXISTS (SELECT FROM {signature} WHERE doc_id = right_id)
