-- How many documents a generation compares, up to one of them or in all. Reads the whole table.
SELECT count(*) FROM {signature}
WHERE head_id = doc_id AND doc_id <= coalesce(CAST(%(through)s AS bigint), 9223372036854775807)
