-- What ties some documents: their pairs (0), their head, and their twins where they are heads (1), and their pins (2).
-- Relies on the keys, on the index on right_id, on that on head_id and on those of verdict; of a twin's family nothing but its head is read. (Not LATERAL: the planner
-- would take each of them for a hub with as many pairs as the average.)
SELECT left_id, 0, string_agg(int8send(right_id), '') FROM {similar_pair}
WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY left_id
UNION ALL
SELECT right_id, 0, string_agg(int8send(left_id), '') FROM {similar_pair}
WHERE right_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY right_id
UNION ALL
SELECT head_id, 1, string_agg(int8send(doc_id), '') FROM {signature}
WHERE head_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id GROUP BY head_id
UNION ALL
SELECT head_id, 1, int8send(doc_id) FROM {signature}
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id
UNION ALL
SELECT left_id, 2, int8send(right_id) FROM nearsim.verdict
WHERE (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))
    AND collection_id = %(collection_id)s AND verdict = 'pinned' AND undone_at IS NULL
    AND EXISTS (SELECT FROM {signature} WHERE doc_id = left_id)
    AND EXISTS (SELECT FROM {signature} WHERE doc_id = right_id)
