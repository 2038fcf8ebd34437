-- The sessions that hold locks on tables, as process, user and application, the longest transaction first.
SELECT DISTINCT ON (activity.xact_start, activity.pid)
    format('process %%s (%%s%%s)', activity.pid, activity.usename,
        CASE WHEN activity.application_name = '' THEN '' ELSE ', ' || activity.application_name END)
FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)
WHERE pg_locks.relation = ANY (ARRAY(SELECT to_regclass(name) FROM unnest(CAST(%(tables)s AS text[])) AS given (name)))
    AND activity.pid <> pg_backend_pid()
ORDER BY activity.xact_start, activity.pid
