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
