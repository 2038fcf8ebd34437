-- What a table is like, and what the user may do with it.
SELECT nspname, relname, CAST(relkind AS text), CAST(relpersistence AS text),
    pg_has_role(relowner, 'USAGE'), pg_get_userbyid(relowner), row_security_active(pg_class.oid),
    relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = pg_class.oid),
    has_schema_privilege(nspname, 'USAGE')
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE pg_class.oid = CAST(%(relation)s AS oid)
