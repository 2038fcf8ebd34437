-- The documents that a generation compares, in order, eight bytes each. Reads the whole table.
SELECT coalesce(string_agg(int8send(doc_id), CAST('' AS bytea) ORDER BY doc_id), CAST('' AS bytea))
FROM {signature} WHERE head_id = doc_id
