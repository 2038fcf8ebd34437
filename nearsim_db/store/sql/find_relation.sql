-- The tables and the like that a name may mean, the most likely first: exactly as it is given before in lower case. Without a
-- schema it is looked for where the user's own sessions would.
SELECT pg_class.oid, nspname, relname
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relname = ANY(CAST(%(names)s AS text[]))
    AND CASE WHEN CAST(%(schemas)s AS text[]) IS NULL THEN pg_table_is_visible(pg_class.oid)
        ELSE nspname = ANY(CAST(%(schemas)s AS text[])) END
ORDER BY array_position(CAST(%(schemas)s AS text[]), CAST(nspname AS text)),
    array_position(CAST(%(names)s AS text[]), CAST(relname AS text))
LIMIT 1
