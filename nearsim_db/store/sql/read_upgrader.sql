-- The session that holds an advisory lock of the database, as process, user and application.
SELECT format('process %%s (%%s%%s)', pid, usename,
    CASE WHEN application_name = '' THEN '' ELSE ', ' || application_name END)
FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locktype = 'advisory' AND pg_locks.granted AND objsubid = 2
    AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = CAST(CAST(%(kind)s AS bigint) AS oid) AND objid = 0
