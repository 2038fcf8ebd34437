-- What a table is like, and what the user, and the owner of our functions, may do with it. Its owner is trusted who is the user
-- or could be the owner of our schema.
SELECT there.nspname, pg_class.relname, quote_ident(there.nspname),
    quote_ident(there.nspname) || '.' || quote_ident(pg_class.relname),
    CAST(pg_class.relkind AS text), CAST(pg_class.relpersistence AS text),
    pg_has_role(pg_class.relowner, 'USAGE'), quote_ident(pg_get_userbyid(pg_class.relowner)),
    pg_get_userbyid(pg_class.relowner) = current_user OR pg_has_role(pg_class.relowner, here.nspowner, 'MEMBER'),
    row_security_active(pg_class.oid),
    pg_class.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = pg_class.oid),
    has_schema_privilege(there.oid, 'USAGE'), has_schema_privilege(ours.relowner, there.oid, 'USAGE')
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS there ON there.oid = pg_class.relnamespace
JOIN pg_catalog.pg_class AS ours ON ours.oid = CAST('nearsim.document' AS regclass)
JOIN pg_catalog.pg_namespace AS here ON here.oid = ours.relnamespace
WHERE pg_class.oid = CAST(%(relation)s AS oid)
