-- name: begin_session
-- What every session of ours relies on.
SET client_encoding = 'UTF8';
-- All our names are qualified: nothing may resolve through the path.
SET search_path = pg_catalog, pg_temp;
-- It only delays queries as short as ours.
SET jit = off;
-- What is known of a queue's size is always old; a bitmap over one taken for short reads all of it for its first row.
SET enable_bitmapscan = off;
-- Every statement of a round must see what is committed by then, whatever a role's default is.
SET default_transaction_isolation = 'read committed';
-- Sessions that hold a lock are idle for long, and streams are read as slowly as their readers like.
SET idle_session_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
-- The server should notice within a minute that a worker's machine is gone.
SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3

-- name: hold_lock_shared
-- Hold an advisory lock with others until the transaction ends, and let the server end it where it is idle for too long.
SELECT set_config('idle_in_transaction_session_timeout', '60s', true), pg_advisory_xact_lock_shared(%(kind)s, %(id)s)

-- name: hold_lock
-- Hold an advisory lock until the transaction ends, and let the server end it where it is idle for too long.
SELECT set_config('idle_in_transaction_session_timeout', '60s', true), pg_advisory_xact_lock(%(kind)s, %(id)s)

-- name: try_lock
-- A transaction's advisory lock, if nobody else has it.
SELECT pg_try_advisory_xact_lock(%(kind)s, %(id)s)

-- name: find_lock
-- A session of this database that has an advisory lock.
SELECT pid FROM pg_catalog.pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND classid = CAST(%(kind)s AS oid) AND objid = CAST(%(id)s AS oid)
LIMIT 1

-- name: read_settings
-- Settings as they are for this session, as they are shown, in bytes where they are sizes, and whether a session can set them.
SELECT name, current_setting(name), CASE WHEN unit IN ('B', 'kB', '8kB', 'MB') THEN pg_size_bytes(current_setting(name)) END, context = 'user'
FROM pg_catalog.pg_settings WHERE name = ANY(CAST(%(names)s AS text[]))
ORDER BY name

-- name: read_rights
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

-- name: widen_memory
-- Until the transaction ends sorts and hashes may take 64 MB, or more where the server is set so.
SELECT set_config('work_mem', greatest(pg_size_bytes(current_setting('work_mem')), 64 * 1024 * 1024) / 1024 || 'kB', true)

-- name: wait_shortly
-- This session waits for locks only so long, as others wait behind it.
SELECT set_config('lock_timeout', %(milliseconds)s, false)

-- name: limit_lock_wait
-- Whoever waits for a lock on a table of an application has all its writers wait behind him, so it is not for long.
SELECT set_config('lock_timeout', %(milliseconds)s, true)

-- name: choose_scan
-- Until the transaction ends, tables are read by their indexes, or without them.
SELECT set_config('enable_seqscan', CASE WHEN %(by_index)s THEN 'off' ELSE 'on' END, true),
    set_config('enable_indexscan', CASE WHEN %(by_index)s THEN 'on' ELSE 'off' END, true),
    set_config('enable_indexonlyscan', CASE WHEN %(by_index)s THEN 'on' ELSE 'off' END, true),
    set_config('enable_bitmapscan', 'off', true)
