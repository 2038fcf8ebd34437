-- A session of this database that has an advisory lock.
SELECT pid FROM pg_catalog.pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND classid = CAST(%(kind)s AS oid) AND objid = CAST(%(id)s AS oid)
LIMIT 1
