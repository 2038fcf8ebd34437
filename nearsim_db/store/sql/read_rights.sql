-- What the user lacks to work in this database: the GRANTs that would give it, quoted. Without the schema, the right
-- to make it; with it, the rights on it, on the documents, and those of the tables' owner, whose leaves are attached.
-- The names are looked up in the catalog only: to_regclass would fail where USAGE is what is missing.
WITH place AS (
    SELECT n.oid AS schema_oid, d.oid AS document_oid, s.relowner AS owner
    FROM (VALUES (1)) AS here
    LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = 'nearsim'
    LEFT JOIN pg_catalog.pg_class d ON d.relnamespace = n.oid AND d.relname = 'document'
    LEFT JOIN pg_catalog.pg_class s ON s.relnamespace = n.oid AND s.relname = 'signature'
)
SELECT needed.what, 'GRANT ' || needed.grant_of || ' TO ' || quote_ident(current_user)
FROM place, LATERAL (VALUES
    (1, 'CREATE on the database', 'CREATE ON DATABASE ' || quote_ident(current_database()),
        schema_oid IS NULL AND NOT has_database_privilege(current_database(), 'CREATE')),
    (2, 'USAGE on the schema', 'USAGE ON SCHEMA nearsim',
        schema_oid IS NOT NULL AND NOT has_schema_privilege(schema_oid, 'USAGE')),
    (3, 'CREATE on the schema', 'CREATE ON SCHEMA nearsim',
        schema_oid IS NOT NULL AND NOT has_schema_privilege(schema_oid, 'CREATE')),
    (4, 'INSERT on the documents', 'SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA nearsim',
        document_oid IS NOT NULL AND NOT has_table_privilege(document_oid, 'INSERT')),
    (5, 'the rights of the tables'' owner', quote_ident(pg_get_userbyid(owner)),
        owner IS NOT NULL AND NOT pg_has_role(owner, 'USAGE'))
) AS needed (position, what, grant_of, missing)
WHERE needed.missing
ORDER BY needed.position
