-- Leases whose worker is gone: nobody holds their lock, or nothing was heard of them for too long.
SELECT lease_id FROM nearsim.lease
WHERE beat_at < clock_timestamp() - make_interval(secs => %(silence)s)
    OR NOT EXISTS (
        SELECT FROM pg_catalog.pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %(kind)s AND objid = lease.lease_id
            AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
