-- The first twin that stays takes the name of a head that was struck out; it has no band rows, as nobody works here.
UPDATE {signature} AS signature SET head_id = first.doc_id
FROM (
    SELECT head_id, min(doc_id) AS doc_id FROM {signature}
    WHERE head_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY head_id
) AS first
WHERE signature.head_id = first.head_id
