-- What ties some documents: their pairs, their head, and their twins where they are heads. Relies on the keys, on the
-- index on right_id and on that on head_id; of a twin's family nothing but its head is read. (Not LATERAL: the planner
-- would take each of them for a hub with as many pairs as the average.)
SELECT left_id, false, string_agg(int8send(right_id), '') FROM {similar_pair}
WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY left_id
UNION ALL
SELECT right_id, false, string_agg(int8send(left_id), '') FROM {similar_pair}
WHERE right_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY right_id
UNION ALL
SELECT head_id, true, string_agg(int8send(doc_id), '') FROM {signature}
WHERE head_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id GROUP BY head_id
UNION ALL
SELECT head_id, true, int8send(doc_id) FROM {signature}
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id
