-- Processes at work, by age: leases whose lock is held.
SELECT worker FROM nearsim.lease
WHERE EXISTS (
    SELECT FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %(kind)s AND objid = lease.lease_id
        AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
ORDER BY lease_id
