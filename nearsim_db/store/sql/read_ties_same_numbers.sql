-- The same, between documents whose numbers are the same only: alike texts with other numbers are kept apart. Twins of the
-- same numbers are tied to the first of them; pins are ties whatever the numbers.
WITH alike AS (
    SELECT head_id, numbers_digest, min(doc_id) AS first_id FROM {signature}
    WHERE head_id IS NOT NULL GROUP BY head_id, numbers_digest
)
SELECT a.first_id, 0, string_agg(int8send(b.first_id), '')
FROM {similar_pair} AS pair
JOIN alike AS a ON a.head_id = pair.left_id
JOIN alike AS b ON b.head_id = pair.right_id AND b.numbers_digest = a.numbers_digest
GROUP BY a.first_id
UNION ALL
SELECT alike.first_id, 1, string_agg(int8send(twin.doc_id), '')
FROM alike
JOIN {signature} AS twin ON twin.head_id = alike.head_id AND twin.numbers_digest = alike.numbers_digest
WHERE twin.doc_id <> alike.first_id
GROUP BY alike.first_id
UNION ALL
SELECT left_id, 2, string_agg(int8send(right_id), '') FROM nearsim.verdict
WHERE collection_id = %(collection_id)s AND verdict = 'pinned' AND undone_at IS NULL
    AND EXISTS (SELECT FROM {signature} WHERE doc_id = left_id)
    AND EXISTS (SELECT FROM {signature} WHERE doc_id = right_id)
GROUP BY left_id
