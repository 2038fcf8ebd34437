-- name: set_upgrade_limits
-- Limit how long this session waits for a lock, because other sessions queue behind it, but do not limit how long its
-- statements take. If the user may do so, also detect deadlocks earlier: the server then cancels an autovacuum that blocks
-- this session and, in a deadlock, this session instead of a session of an application.
SELECT set_config('lock_timeout', %(milliseconds)s, false), set_config('statement_timeout', '0', false),
    CASE WHEN has_parameter_privilege('deadlock_timeout', 'SET') THEN set_config('deadlock_timeout', '50ms', false) END

-- name: find_index
-- The schema of an index, and whether it is valid, which it is not after an interrupted build; no row if it does not exist.
-- Reads only the catalog.
SELECT nspname, indisvalid
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname IN ('nearsim', 'nearsim_index') AND relname = %(name)s

-- name: drop_index
-- Drop an index without blocking reads and writes.
DROP INDEX CONCURRENTLY {index}

-- name: list_unvalidated
-- Constraints that are not validated on existing rows yet: schema, table and name, parents before leaves. Reads only the
-- catalog.
SELECT nspname, relname, conname
FROM pg_constraint
JOIN pg_class ON pg_class.oid = conrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname IN ('nearsim', 'nearsim_index') AND NOT convalidated
ORDER BY relkind = 'p' DESC, relname, conname

-- name: validate_constraint
-- Validate a constraint on existing rows, without blocking reads and writes.
ALTER TABLE {table} VALIDATE CONSTRAINT {constraint}

-- name: list_upgrade_blockers
-- Sessions for which an upgrade waits: process, user and application, the longest transaction first. These are sessions that
-- have had locks in the schema for longer than the upgrade has waited. If there are none, as when an index is built, these
-- are sessions whose snapshot is older than that. Reads only the catalog.
WITH elder AS (
    SELECT pid, xact_start, backend_xmin,
        format('process %%s (%%s%%s)', pid, coalesce(usename, backend_type),
            CASE WHEN application_name = '' THEN '' ELSE ', ' || application_name END) AS shown,
        EXISTS (
            SELECT FROM pg_locks JOIN pg_class ON pg_class.oid = pg_locks.relation
            WHERE pg_locks.pid = activity.pid AND pg_locks.granted
                AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND relnamespace IN (to_regnamespace('nearsim'), to_regnamespace('nearsim_index'))) AS holds
    FROM pg_stat_activity AS activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        -- Most users may not see when the transactions of other users began.
        AND coalesce(xact_start, '-infinity') < clock_timestamp() - CAST(%(waited)s AS interval)
)
SELECT shown FROM elder
WHERE holds OR (backend_xmin IS NOT NULL AND NOT EXISTS (SELECT FROM elder WHERE holds))
ORDER BY xact_start, pid

-- name: find_upgrader
-- The session that has the upgrade lock of this database: process, user and application. Reads only the catalog.
SELECT format('process %%s (%%s%%s)', pid, usename,
    CASE WHEN application_name = '' THEN '' ELSE ', ' || application_name END)
FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locktype = 'advisory' AND pg_locks.granted AND objsubid = 2
    AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = CAST(CAST(%(kind)s AS bigint) AS oid) AND objid = 0

-- name: list_untrusted
-- By what untrusted roles could run code with the rights of the current user: their objects of every kind in both schemas,
-- triggers and event triggers that call their functions, their rights to create objects and, if the current user is a
-- superuser, their control over nearsim's roles. Each row also has the role and the name of the database. The current user,
-- the owner of the database, superusers and nearsim_admin are trusted. From PostgreSQL 16 on, a role that a non-superuser
-- created is recognised by the grant to its creator. Reads only the catalog.
WITH trusted AS (
    SELECT pg_roles.oid FROM pg_catalog.pg_roles JOIN pg_catalog.pg_database ON datname = current_database()
    WHERE rolsuper OR rolname = current_user OR pg_roles.oid = datdba
), controlled AS (
    SELECT roleid, member FROM pg_catalog.pg_auth_members AS membership
    WHERE roleid IN (to_regrole('nearsim_reader'), to_regrole('nearsim_writer'), to_regrole('nearsim_admin'))
        AND admin_option AND to_jsonb(membership) ->> 'inherit_option' = 'false'
        AND to_jsonb(membership) ->> 'set_option' = 'false' AND member NOT IN (SELECT oid FROM trusted)
), admitted AS (
    SELECT oid FROM trusted
    UNION ALL
    SELECT oid FROM pg_catalog.pg_roles
    WHERE rolname = 'nearsim_admin' AND oid NOT IN (SELECT roleid FROM controlled)
), place AS (
    SELECT oid, nspname, nspacl FROM pg_catalog.pg_namespace WHERE nspname IN ('nearsim', 'nearsim_index')
), untrusted (role, what) AS (
    SELECT refobjid, format('owns the %s %s', object.type, object.identity)
    FROM pg_catalog.pg_shdepend CROSS JOIN LATERAL pg_identify_object(classid, objid, objsubid) AS object
    WHERE dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
        AND refclassid = CAST('pg_catalog.pg_authid' AS regclass) AND deptype = 'o'
        AND refobjid NOT IN (SELECT oid FROM admitted)
        AND (object.schema IN (SELECT nspname FROM place)
            OR object.type = 'schema' AND object.name IN (SELECT nspname FROM place)
            OR object.type = 'extension' AND EXISTS (
                SELECT FROM pg_catalog.pg_extension JOIN place ON place.oid = extnamespace
                WHERE pg_extension.oid = objid))
    UNION ALL
    SELECT proowner, format('owns %s, which a trigger of %s calls', CAST(tgfoid AS regprocedure), CAST(tgrelid AS regclass))
    FROM pg_catalog.pg_trigger
    JOIN pg_catalog.pg_class ON pg_class.oid = tgrelid JOIN place ON place.oid = relnamespace
    JOIN pg_catalog.pg_proc ON pg_proc.oid = tgfoid
    WHERE proowner NOT IN (SELECT oid FROM admitted)
    UNION ALL
    SELECT proowner, format('owns %s, which the event trigger %I calls', CAST(evtfoid AS regprocedure), evtname)
    FROM pg_catalog.pg_event_trigger JOIN pg_catalog.pg_proc ON pg_proc.oid = evtfoid
    WHERE evtenabled <> 'D' AND proowner NOT IN (SELECT oid FROM admitted)
    UNION ALL
    SELECT acl.grantee, format('may create objects in the schema %s', nspname)
    FROM place CROSS JOIN LATERAL aclexplode(nspacl) AS acl
    WHERE acl.privilege_type = 'CREATE' AND acl.grantee NOT IN (SELECT oid FROM admitted)
    UNION ALL
    SELECT member, format('controls the role %s', CAST(roleid AS regrole)) FROM controlled
    WHERE (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
)
SELECT coalesce(quote_ident(rolname), 'PUBLIC'), what, quote_ident(current_database())
FROM untrusted LEFT JOIN pg_catalog.pg_roles ON pg_roles.oid = role
ORDER BY what LIKE 'owns the schema%' DESC, what LIMIT 5

-- name: find_schema
-- The schema nearsim; NULL if it does not exist. Reads only the catalog.
SELECT CAST(to_regnamespace('nearsim') AS text)

-- name: create_schema
-- Create the schema for Alembic's version table, but not on the nodes of a Citus cluster (see
-- migrations/schema/schemas.sql).
SELECT set_config('citus.enable_ddl_propagation', 'off', true)
WHERE current_setting('citus.enable_ddl_propagation', true) IS NOT NULL;
CREATE SCHEMA nearsim

-- name: create_version_table
-- Create the table in which Alembic keeps the revision, as Alembic would do. After a downgrade to base it is empty.
CREATE TABLE IF NOT EXISTS nearsim.alembic_version (
    version_num varchar(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY
)

-- name: record_baseline
-- Record the revision, and the digest of the files from which the baseline was made.
WITH floor AS (
    INSERT INTO nearsim_index.schema_floor (oldest_revision, baseline_digest) VALUES (%(revision)s, %(digest)s)
)
INSERT INTO nearsim.alembic_version (version_num) VALUES (%(revision)s)

-- name: find_version_table
-- Whether Alembic's version table exists, and whether the table with the digest exists. Reads only the catalog.
SELECT to_regclass('nearsim.alembic_version') IS NOT NULL, to_regclass('nearsim_index.schema_floor') IS NOT NULL

-- name: read_revision
-- The revision of the schema.
SELECT version_num FROM nearsim.alembic_version

-- name: read_schema_state
-- The revision of the schema, the digest of its baseline, the oldest revision whose code may work with it, whether it has
-- unvalidated constraints, and whether new generations are distributed. The digest is read through JSON, because the column
-- is missing in a database of an early development version. Reads small tables and the catalog.
SELECT version.version_num, to_jsonb(floor) ->> 'baseline_digest', floor.oldest_revision,
    EXISTS (
        SELECT FROM pg_constraint
        WHERE connamespace IN (to_regnamespace('nearsim'), to_regnamespace('nearsim_index')) AND NOT convalidated),
    COALESCE((
        SELECT pg_catalog.pg_get_expr(adbin, adrelid) = 'true' FROM pg_catalog.pg_attrdef
        JOIN pg_catalog.pg_attribute ON attrelid = adrelid AND attnum = adnum
        WHERE adrelid = to_regclass('nearsim.generation') AND attname = 'distributed'), false)
FROM nearsim.alembic_version AS version LEFT JOIN nearsim_index.schema_floor AS floor ON true
