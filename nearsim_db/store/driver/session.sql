-- name: begin_session
-- Settings of every session of nearsim, whatever the role, the database or the environment sets. They are made in one round
-- trip and not as startup options, because connection poolers refuse such options.
SET statement_timeout = 0;
-- Names are qualified. Nothing may be looked up through the search path, including the functions below.
SET search_path = pg_catalog, pg_temp;
-- Parallel workers start with the transaction_timeout of the role or database, which may end them before they adopt the
-- timeout of the session.
SELECT set_config(name, '0', false)
FROM (VALUES ('max_parallel_workers_per_gather'), ('max_parallel_maintenance_workers'), ('transaction_timeout'))
    AS setting (name)
WHERE current_setting('transaction_timeout', true) <> '0';
-- JIT compilation only delays short queries.
SET jit = off;
-- Some minor versions do not have this setting.
SELECT set_config(name, '', false) FROM (VALUES ('restrict_nonsystem_relation_kind')) AS newer (name)
WHERE current_setting(name, true) IS NOT NULL;
SET lock_timeout = 0;
-- Sessions may be idle while they have a lock, or while a slow client reads a stream.
SET idle_session_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
-- Each statement must see everything that is committed when it begins.
SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off;
SET default_transaction_deferrable = off;
-- The formats in which values are written and read.
SET client_encoding = 'UTF8';
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
SET TimeZone = 'UTC';
SET extra_float_digits = 1;
SET bytea_output = 'hex';
-- Settings that change the meaning of SQL.
SET standard_conforming_strings = on;
SET transform_null_equals = off;
SET array_nulls = on;
SET quote_all_identifiers = off;
SET row_security = on;
SET exit_on_error = off;
SET plpgsql.extra_errors = 'none';
SET default_table_access_method = 'heap';
-- The statistics of a queue are always outdated. A bitmap scan that was planned for a short queue would read all of a long
-- queue before it returns the first row.
SET enable_bitmapscan = off;
SET enable_seqscan = on;
SET enable_indexscan = on;
SET enable_indexonlyscan = on;
SET enable_nestloop = on;
SET enable_hashjoin = on;
SET enable_mergejoin = on;
SET enable_hashagg = on;
SET enable_sort = on;
SET enable_material = on;
SET enable_partition_pruning = on;
SET from_collapse_limit = 8;
SET join_collapse_limit = 8;
SET plan_cache_mode = 'auto';
-- The server should detect a dead worker host within a minute.
SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3

-- name: configure_citus
-- Settings of Citus, for the session or the transaction. All rows of a bucket are on the same shard, so subqueries with a
-- LIMIT for each bucket can run there. There is one connection to each node, because further connections, each of which
-- opens a session for a short statement, cost more than they gain. Returns no row on a server without Citus.
SELECT set_config(name, value, {is_local})
FROM (VALUES ('citus.subquery_pushdown', 'on'), ('citus.max_adaptive_executor_pool_size', '1')) AS own (name, value)
WHERE current_setting(name, true) IS NOT NULL

-- name: lock_session
-- Take an advisory lock until the session ends or releases it.
SELECT pg_advisory_lock(%(kind)s, %(id)s)

-- name: try_lock_session
-- Try to take an advisory lock until the session ends or releases it.
SELECT pg_try_advisory_lock(%(kind)s, %(id)s)

-- name: unlock_session
-- Release an advisory lock of the session.
SELECT pg_advisory_unlock(%(kind)s, %(id)s)

-- name: lock_shared
-- Take a shared advisory lock until the transaction ends; the server ends the session if the transaction is idle for
-- too long.
SELECT set_config('idle_in_transaction_session_timeout', %(idle)s, true), pg_advisory_xact_lock_shared(%(kind)s, %(id)s)

-- name: lock_exclusively
-- Take an advisory lock until the transaction ends; the server ends the session if the transaction is idle for too
-- long.
SELECT set_config('idle_in_transaction_session_timeout', %(idle)s, true), pg_advisory_xact_lock(%(kind)s, %(id)s)

-- name: try_lock
-- Try to take an advisory lock until the transaction ends.
SELECT pg_try_advisory_xact_lock(%(kind)s, %(id)s)

-- name: find_lock
-- The process of a session of this database that has an advisory lock; 0 on a standby, which does not see the locks of its
-- primary. Reads only the catalog.
SELECT 0 WHERE pg_is_in_recovery()
UNION ALL
SELECT pid FROM pg_catalog.pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND classid = CAST(%(kind)s AS oid) AND objid = CAST(%(id)s AS oid)
LIMIT 1

-- name: read_settings
-- Current values of settings, in bytes too if the value is a size, and whether a session may change them. Reads only the
-- catalog.
SELECT name, current_setting(name), CASE WHEN unit IN ('B', 'kB', '8kB', 'MB') THEN pg_size_bytes(current_setting(name)) END, context = 'user'
FROM pg_catalog.pg_settings WHERE name = ANY(CAST(%(names)s AS text[]))
ORDER BY name

-- name: list_missing_rights
-- Rights that the user lacks in this database, each with the statement that grants it. If the schema is missing, this is the
-- right to create it. Otherwise these are rights on the schema and on the documents; membership in the owner of the tables,
-- because leaves are attached to them; and LOGIN if band rows are distributed, because Citus connects to the nodes as the
-- current user, also after SET ROLE. Names are looked up in the catalog, because to_regclass would fail without USAGE.
WITH place AS (
    SELECT n.oid AS schema_oid, i.oid AS index_oid, d.oid AS document_oid, s.relowner AS owner, EXISTS (
        SELECT FROM pg_catalog.pg_attrdef
        JOIN pg_catalog.pg_attribute ON attrelid = adrelid AND attnum = adnum
        WHERE adrelid = g.oid AND attname = 'distributed' AND pg_get_expr(adbin, adrelid) = 'true') AS is_distributed
    FROM (VALUES (1)) AS here
    LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = 'nearsim'
    LEFT JOIN pg_catalog.pg_namespace i ON i.nspname = 'nearsim_index'
    LEFT JOIN pg_catalog.pg_class d ON d.relnamespace = n.oid AND d.relname = 'document'
    LEFT JOIN pg_catalog.pg_class s ON s.relnamespace = n.oid AND s.relname = 'signature'
    LEFT JOIN pg_catalog.pg_class g ON g.relnamespace = n.oid AND g.relname = 'generation'
)
SELECT needed.what, coalesce('GRANT ' || needed.grant_of || ' TO ' || quote_ident(current_user),
    'ALTER ROLE ' || quote_ident(current_user) || ' LOGIN')
FROM place, LATERAL (VALUES
    (1, 'CREATE on the database', 'CREATE ON DATABASE ' || quote_ident(current_database()),
        (schema_oid IS NULL OR index_oid IS NULL) AND NOT has_database_privilege(current_database(), 'CREATE')),
    (2, 'USAGE on the schema', 'USAGE ON SCHEMA nearsim',
        schema_oid IS NOT NULL AND NOT has_schema_privilege(schema_oid, 'USAGE')),
    (3, 'CREATE on the schema', 'CREATE ON SCHEMA nearsim',
        schema_oid IS NOT NULL AND NOT has_schema_privilege(schema_oid, 'CREATE')),
    (4, 'USAGE and CREATE on the schema of indexes', 'USAGE, CREATE ON SCHEMA nearsim_index',
        index_oid IS NOT NULL AND NOT (has_schema_privilege(index_oid, 'USAGE')
            AND has_schema_privilege(index_oid, 'CREATE'))),
    (5, 'INSERT on the documents', 'SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA nearsim',
        document_oid IS NOT NULL AND NOT has_table_privilege(document_oid, 'INSERT')),
    (6, 'the rights of the tables'' owner', quote_ident(pg_get_userbyid(owner)),
        owner IS NOT NULL AND NOT pg_has_role(owner, 'USAGE')),
    (7, 'LOGIN, to connect to the nodes', NULL,
        is_distributed AND EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = current_user AND NOT rolcanlogin))
) AS needed (position, what, grant_of, missing)
WHERE needed.missing
ORDER BY needed.position

-- name: raise_work_mem
-- Allow 64 MB for sorts and hashes until the transaction ends, or more if the server's setting is larger.
SELECT set_config('work_mem', greatest(pg_size_bytes(current_setting('work_mem')), 64 * 1024 * 1024) / 1024 || 'kB', true)

-- name: limit_lock_wait
-- Limit how long the session waits for a lock, because other sessions queue behind it.
SELECT set_config('lock_timeout', %(milliseconds)s, false)

-- name: limit_transaction_lock_wait
-- Limit how long the transaction waits for a lock: while a session waits for a lock on an application's table, all writers
-- of that table queue behind it.
SELECT set_config('lock_timeout', %(milliseconds)s, true)

-- name: set_scan_method
-- Make the planner read tables only through their indexes, or only without them, until the transaction ends.
SET LOCAL enable_seqscan = {without_index};
SET LOCAL enable_indexscan = {by_index};
SET LOCAL enable_indexonlyscan = {by_index};
SET LOCAL enable_bitmapscan = off

-- name: plan_for_all_rows
-- Plan the queries of cursors on the assumption that all of their rows are read, until the transaction ends.
SET LOCAL cursor_tuple_fraction = 1
