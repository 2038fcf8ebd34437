-- name: may_create_schemas
-- Whether the current user may create schemas in this database, and the server is not a standby. Reads only the catalog.
SELECT has_database_privilege(current_database(), 'CREATE') AND NOT pg_is_in_recovery()

-- name: create_expected_schema
-- Create the first schema of a second installation, which serves for comparing definitions.
CREATE SCHEMA nearsim_expected

-- name: set_expected_rights
-- Give the second installation the same privileges as the first one, and isolation of collections if the first one has it.
SELECT CASE WHEN nearsim.is_isolated() THEN nearsim_expected.set_isolation(true) ELSE nearsim_expected.grant_rights() END

-- name: reset_rights
-- Reset the owners and privileges of everything in both schemas.
SELECT nearsim.grant_rights()

-- name: qualify_names
-- Let the server print all names with their schemas until the transaction ends.
SELECT set_config('search_path', 'pg_catalog', true)

-- name: list_objects
-- The objects in two schemas, each with its definition as this server prints it, in the order of their creation; and the
-- privileges of readers and writers. The definition shows whether an index is invalid or a trigger is disabled. Reads only
-- the catalog.
WITH place AS (
    SELECT oid FROM pg_namespace WHERE nspname IN (%(schema)s, %(index_schema)s)
), relation AS (
    SELECT oid, relkind, relacl, relowner, reloptions, CAST(CAST(oid AS regclass) AS text) AS name FROM pg_class
    WHERE relnamespace IN (SELECT oid FROM place) AND relname NOT IN ('alembic_version', 'alembic_version_pkc')
), routine AS (
    SELECT oid, proacl, proowner, CAST(CAST(oid AS regprocedure) AS text) AS name FROM pg_proc
    WHERE pronamespace IN (SELECT oid FROM place) AND prokind IN ('f', 'p')
), granted AS (
    SELECT 'TABLE' AS kind, oid, name, acl.* FROM relation CROSS JOIN LATERAL aclexplode(relacl) AS acl
    WHERE relkind IN ('r', 'p', 'v')
    UNION ALL
    SELECT 'SEQUENCE', oid, name, acl.* FROM relation CROSS JOIN LATERAL aclexplode(relacl) AS acl WHERE relkind = 'S'
    UNION ALL
    SELECT 'ROUTINE', oid, name, acl.* FROM routine CROSS JOIN LATERAL aclexplode(proacl) AS acl
    UNION ALL
    SELECT 'COLUMN', attrelid, format('%%s.%%I', name, attname), acl.*
    FROM relation JOIN pg_attribute ON attrelid = oid CROSS JOIN LATERAL aclexplode(attacl) AS acl
    WHERE NOT attisdropped
    UNION ALL
    SELECT 'SCHEMA', pg_namespace.oid, nspname, acl.*
    FROM place JOIN pg_namespace USING (oid) CROSS JOIN LATERAL aclexplode(nspacl) AS acl
), object (kind, oid, name, definition) AS (
    SELECT CASE relkind WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'type' ELSE 'table' END, oid, name, CAST(relkind AS text)
    FROM relation WHERE relkind IN ('r', 'p', 'S', 'c')
    UNION ALL
    SELECT 'column', attrelid, format('%%s.%%I', name, attname),
        concat_ws(' ', format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'NOT NULL' END,
            nullif(attidentity, ''), nullif(attgenerated, ''), pg_get_expr(adbin, adrelid))
    FROM relation JOIN pg_attribute ON attrelid = oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relkind IN ('r', 'p', 'c')
    UNION ALL
    SELECT 'view', oid, name, format('CREATE OR REPLACE VIEW %%s %%sAS %%s', name,
        'WITH (' || array_to_string(reloptions, ', ') || ') ', pg_get_viewdef(oid))
    FROM relation WHERE relkind = 'v'
    UNION ALL
    SELECT 'function', oid, name, pg_get_functiondef(oid) FROM routine
    UNION ALL
    SELECT 'trigger', pg_trigger.oid, format('%%I on %%s', tgname, name),
        concat(CASE tgenabled WHEN 'O' THEN '' ELSE format('(%%s) ', tgenabled) END,
            regexp_replace(pg_get_triggerdef(pg_trigger.oid), '^CREATE', 'CREATE OR REPLACE'))
    FROM relation JOIN pg_trigger ON tgrelid = relation.oid WHERE NOT tgisinternal AND tgparentid = 0
    UNION ALL
    SELECT 'index', oid, name, concat(pg_get_indexdef(oid), CASE WHEN NOT indisvalid THEN ' (not valid)' END)
    FROM relation JOIN pg_index ON indexrelid = oid
    UNION ALL
    SELECT 'constraint', pg_constraint.oid, format('%%I on %%s', conname, name), pg_get_constraintdef(pg_constraint.oid)
    FROM relation JOIN pg_constraint ON conrelid = relation.oid
    -- PostgreSQL 18 has constraints for NOT NULL, which the definitions of columns above include already.
    WHERE contype <> 'n' AND relkind IN ('r', 'p')
    UNION ALL
    SELECT 'policy', pg_policy.oid, format('%%I on %%s', polname, name),
        concat_ws(' ', polcmd, polpermissive, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
    FROM relation JOIN pg_policy ON polrelid = relation.oid
    UNION ALL
    SELECT 'comment', oid, format('on %%s', name), format('COMMENT ON VIEW %%s IS %%L', name, obj_description(oid, 'pg_class'))
    FROM relation WHERE relkind = 'v' AND obj_description(oid, 'pg_class') IS NOT NULL
    UNION ALL
    SELECT 'comment', attrelid, format('on %%s.%%I', name, attname),
        format('COMMENT ON COLUMN %%s.%%I IS %%L', name, attname, col_description(oid, attnum))
    FROM relation JOIN pg_attribute ON attrelid = oid
    WHERE relkind = 'v' AND NOT attisdropped AND col_description(oid, attnum) IS NOT NULL
    UNION ALL
    SELECT 'comment', oid, format('on %%s', name),
        format('COMMENT ON ROUTINE %%s IS %%L', name, obj_description(oid, 'pg_proc'))
    FROM routine WHERE obj_description(oid, 'pg_proc') IS NOT NULL
    UNION ALL
    SELECT 'grant', granted.oid, format('%%s on %%s to %%I', privilege_type, name, rolname), ''
    FROM granted JOIN pg_roles ON pg_roles.oid = grantee
    WHERE rolname IN ('nearsim_reader', 'nearsim_writer')
)
SELECT kind, name, definition FROM object ORDER BY oid, kind = 'comment'
