-- name: open_lease
-- A worker begins.
INSERT INTO nearsim.lease (worker) VALUES (%(worker)s) RETURNING lease_id

-- name: close_lease
-- A worker ends; what it still had is free at once. Locked in the order in which dispatchers lock it, too.
WITH held AS MATERIALIZED (
    SELECT generation_id, stage, doc_id FROM nearsim.work WHERE lease_id = %(lease_id)s
    ORDER BY generation_id, stage, doc_id FOR UPDATE
), freed AS (
    UPDATE nearsim.work SET lease_id = NULL FROM held
    WHERE work.generation_id = held.generation_id AND work.stage = held.stage AND work.doc_id = held.doc_id
)
DELETE FROM nearsim.lease WHERE lease_id = %(lease_id)s

-- name: beat
-- A worker lives.
UPDATE nearsim.lease SET beat_at = clock_timestamp() WHERE lease_id = %(lease_id)s

-- name: list_workers
-- Processes at work, by age: leases whose lock is held.
SELECT worker FROM nearsim.lease
WHERE EXISTS (
    SELECT FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %(kind)s AND objid = lease.lease_id
        AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
ORDER BY lease_id

-- name: find_lost_leases
-- Leases whose worker is gone: nobody holds their lock, or nothing was heard of them for too long.
SELECT lease_id FROM nearsim.lease
WHERE beat_at < clock_timestamp() - make_interval(secs => %(silence)s)
    OR NOT EXISTS (
        SELECT FROM pg_catalog.pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %(kind)s AND objid = lease.lease_id
            AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))

-- name: free_lost_work
-- What lost workers had is free again, and counts as tried: it may be what they died of. What a
-- transaction is at is left to it: it ends by itself, or the server ends it.
WITH lost AS MATERIALIZED (
    SELECT generation_id, stage, doc_id FROM nearsim.work WHERE lease_id = ANY(CAST(%(lease_ids)s AS integer[]))
    ORDER BY generation_id, stage, doc_id FOR UPDATE SKIP LOCKED
)
UPDATE nearsim.work SET lease_id = NULL,
    attempts = CASE WHEN again THEN 0 ELSE attempts + 1 END, again = false,
    error = 'the worker that was at it died or went silent'
FROM lost
WHERE work.generation_id = lost.generation_id AND work.stage = lost.stage AND work.doc_id = lost.doc_id
RETURNING work.doc_id

-- name: drop_lost_leases
-- Lost leases that hold no work any more; one that is locked is being renewed, or dropped by another.
WITH lost AS MATERIALIZED (
    SELECT lease_id FROM nearsim.lease
    WHERE lease_id = ANY(CAST(%(lease_ids)s AS integer[]))
        AND NOT EXISTS (SELECT FROM nearsim.work WHERE work.lease_id = lease.lease_id)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM nearsim.lease WHERE lease_id = ANY (ARRAY(SELECT lease_id FROM lost))
