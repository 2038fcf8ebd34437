-- name: limit_upgrade
-- In this session wait for locks only so long, as everybody else waits behind that, but work as long as it takes. Where the
-- session may, it also looks earlier for what it is blocked by: the server ends an autovacuum then, and in a deadlock this
-- session, not an application.
SELECT set_config('lock_timeout', %(milliseconds)s, false), set_config('statement_timeout', '0', false),
    CASE WHEN has_parameter_privilege('deadlock_timeout', 'SET') THEN set_config('deadlock_timeout', '50ms', false) END

-- name: is_index_valid
-- Whether an index of the schema is whole; false for what a build that was broken off left, no row where there is none.
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(format('nearsim.%%I', CAST(%(name)s AS text)))

-- name: drop_index
-- Drop an index while its table is read and written.
DROP INDEX CONCURRENTLY {index}

-- name: list_unvalidated
-- The constraints that hold for new rows and were not yet checked on the old ones: table and name, parents before leaves.
SELECT relname, conname
FROM pg_constraint
JOIN pg_class ON pg_class.oid = conrelid
WHERE relnamespace = to_regnamespace('nearsim') AND NOT convalidated
ORDER BY relkind = 'p' DESC, relname, conname

-- name: validate_constraint
-- Check the old rows of a table against a constraint; reading and writing go on meanwhile.
ALTER TABLE {table} VALIDATE CONSTRAINT {constraint}

-- name: read_waited_for
-- The sessions that an upgrade has to wait for, as process, user and application, the longest transaction first: those that
-- hold locks in the schema since before it asked for its own, else (for an index) those whose snapshot is as old.
WITH elder AS (
    SELECT pid, xact_start, backend_xmin,
        format('process %%s (%%s%%s)', pid, coalesce(usename, backend_type),
            CASE WHEN application_name = '' THEN '' ELSE ', ' || application_name END) AS shown,
        EXISTS (
            SELECT FROM pg_locks JOIN pg_class ON pg_class.oid = pg_locks.relation
            WHERE pg_locks.pid = activity.pid AND pg_locks.granted
                AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND relnamespace = to_regnamespace('nearsim')) AS holds
    FROM pg_stat_activity AS activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        -- Others' transactions are shown to few.
        AND coalesce(xact_start, '-infinity') < clock_timestamp() - CAST(%(waited)s AS interval)
)
SELECT shown FROM elder
WHERE holds OR (backend_xmin IS NOT NULL AND NOT EXISTS (SELECT FROM elder WHERE holds))
ORDER BY xact_start, pid

-- name: read_upgrader
-- The session that holds an advisory lock of the database, as process, user and application.
SELECT format('process %%s (%%s%%s)', pid, usename,
    CASE WHEN application_name = '' THEN '' ELSE ', ' || application_name END)
FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locktype = 'advisory' AND pg_locks.granted AND objsubid = 2
    AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = CAST(CAST(%(kind)s AS bigint) AS oid) AND objid = 0
