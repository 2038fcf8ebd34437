-- The similarities of pairs, given by their documents or twins of them, packed as eight bytes each in the order given; 0
-- where a pair is gone. Relies on the keys.
SELECT coalesce(string_agg(float8send(coalesce(pair.similarity, 0)), '' ORDER BY asked.row), '')
FROM unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) WITH ORDINALITY
    AS asked (left_id, right_id, row)
LEFT JOIN {signature} AS one ON one.doc_id = asked.left_id
LEFT JOIN {signature} AS other ON other.doc_id = asked.right_id
LEFT JOIN {similar_pair} AS pair ON pair.left_id = least(one.head_id, other.head_id)
    AND pair.right_id = greatest(one.head_id, other.head_id)
