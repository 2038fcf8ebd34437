-- What tables take on disk with their indexes and TOAST, as the last VACUUM of each saw it: to measure it would wait for who
-- loads them. Those that are not there take nothing.
WITH leaf AS (SELECT to_regclass(name) AS id FROM unnest(CAST(%(tables)s AS text[])) AS named (name))
SELECT coalesce(sum(CAST(relpages AS bigint)), 0) * CAST(current_setting('block_size') AS bigint)
FROM pg_catalog.pg_class
WHERE oid IN (
    SELECT id FROM leaf
    UNION SELECT indexrelid FROM pg_catalog.pg_index JOIN leaf ON indrelid = id
    UNION SELECT reltoastrelid FROM pg_catalog.pg_class AS heap JOIN leaf ON heap.oid = id
    UNION SELECT indexrelid FROM pg_catalog.pg_class AS heap JOIN leaf ON heap.oid = id
        JOIN pg_catalog.pg_index ON indrelid = reltoastrelid)
