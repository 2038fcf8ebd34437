-- The sessions that hold locks on tables, or that read since before a detach of one of these was begun: as process, user and
-- application, the longest transaction first.
WITH given AS (
    SELECT to_regclass(name) AS relation FROM unnest(CAST(%(tables)s AS text[])) AS named (name)
), pending AS (
    SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits JOIN given ON inhrelid = relation WHERE inhdetachpending) AS any
)
SELECT format('process %%s (%%s%%s)', activity.pid, activity.usename,
    CASE WHEN activity.application_name = '' THEN '' ELSE ', ' || activity.application_name END)
FROM pg_catalog.pg_stat_activity AS activity, pending
WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
    AND (EXISTS (
            SELECT FROM pg_catalog.pg_locks JOIN given USING (relation)
            WHERE pg_locks.pid = activity.pid AND pg_locks.granted)
        OR pending.any AND activity.backend_xmin IS NOT NULL
            AND activity.xact_start < clock_timestamp() - interval '1 second')
ORDER BY activity.xact_start, activity.pid
