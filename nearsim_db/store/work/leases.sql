-- name: open_lease
-- Insert a worker's lease.
INSERT INTO nearsim_index.lease (worker) VALUES (%(worker)s) RETURNING lease_id

-- name: release_batches
-- Turn the batches of these leases into separate work for each document, and count an attempt for the work of suspect
-- leases. Documents that were queued again meanwhile remain new work. Rows are locked in the order in which dispatchers lock
-- them; a batch that a running transaction has locked may be skipped. Returns the number of documents. Reads the whole
-- queue.
WITH chosen AS MATERIALIZED (
    SELECT generation_id, stage, doc_id FROM nearsim.work
    WHERE lease_id = ANY(CAST(%(lease_ids)s AS integer[]))
    ORDER BY generation_id, stage, doc_id FOR UPDATE {skipping_locked}
), batch AS (
    DELETE FROM nearsim.work USING chosen
    WHERE work.generation_id = chosen.generation_id AND work.stage = chosen.stage AND work.doc_id = chosen.doc_id
    RETURNING work.*, work.lease_id = ANY(CAST(%(suspect)s AS integer[])) AS is_suspect
), released AS (
    INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage, queued_at, attempts, reached, error, lost_lease_id)
    SELECT DISTINCT ON (generation_id, stage, document.doc_id) generation_id, document.doc_id, stage, queued_at,
        attempts + CAST(is_suspect AS integer), reached,
        CASE WHEN is_suspect THEN 'the worker died or its lease expired' ELSE error END,
        CASE WHEN is_suspect THEN lease_id ELSE lost_lease_id END
    FROM batch CROSS JOIN LATERAL unnest(doc_ids) AS document (doc_id)
    ORDER BY generation_id, stage DESC, document.doc_id, attempts
    {repeat_on_conflict}
)
SELECT coalesce(sum(cardinality(doc_ids)), 0) FROM batch

-- name: close_lease
-- Delete a worker's lease, whose work was released before. Relies on lease_pkey.
DELETE FROM nearsim_index.lease WHERE lease_id = %(lease_id)s

-- name: mark_lease_closed
-- Mark a lease as closed, which needs no disk space. Its work is released later, without counting an attempt. Relies on
-- lease_pkey.
UPDATE nearsim_index.lease SET closed = true WHERE lease_id = %(lease_id)s

-- name: forgive_lost_work
-- Take back the attempts that were counted when leases were lost, because the process is still alive. Reads the whole queue.
WITH lost AS MATERIALIZED (
    SELECT generation_id, stage, doc_id FROM nearsim.work
    WHERE lost_lease_id = ANY(CAST(%(lease_ids)s AS integer[])) AND attempts > 0
    ORDER BY generation_id, stage, doc_id FOR UPDATE
)
UPDATE nearsim.work SET attempts = attempts - 1, lost_lease_id = NULL, error = CASE WHEN attempts > 1 THEN error END,
    set_aside_at = NULL, due_at = clock_timestamp()
FROM lost
WHERE work.generation_id = lost.generation_id AND work.stage = lost.stage AND work.doc_id = lost.doc_id

-- name: renew_lease
-- Record a worker's heartbeat. Relies on lease_pkey.
UPDATE nearsim_index.lease SET beat_at = clock_timestamp() WHERE lease_id = %(lease_id)s

-- name: list_workers
-- The running workers, the oldest first, with the time since the last heartbeat. A worker is running if a session has the
-- advisory lock of its lease. Reads the whole table, which has a row for each worker.
SELECT worker, silent_seconds FROM nearsim_index.visible_workers AS lease
WHERE EXISTS (
    SELECT FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %(kind)s AND objid = lease.lease_id
        AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
ORDER BY lease_id

-- name: find_expired_leases
-- Leases that are marked as closed, whose advisory lock is free, or that had no heartbeat for too long; and whether their
-- work may have ended them, which is not the case if they were closed, or ended together with the server. Reads the whole
-- table, which has a row for each worker.
SELECT lease_id, NOT closed AND (is_held OR beat_at >= pg_postmaster_start_time())
FROM nearsim_index.lease CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %(kind)s AND objid = lease.lease_id
            AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())) AS is_held
) AS lock
WHERE closed OR NOT is_held OR beat_at < clock_timestamp() - make_interval(secs => %(silence)s)

-- name: delete_expired_leases
-- Delete expired leases without work. A locked lease is skipped, because another session is renewing or deleting it. Reads
-- the whole queue.
WITH expired AS MATERIALIZED (
    SELECT lease_id FROM nearsim_index.lease
    WHERE lease_id = ANY(CAST(%(lease_ids)s AS integer[]))
        AND NOT EXISTS (SELECT FROM nearsim.work WHERE work.lease_id = lease.lease_id)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM nearsim_index.lease WHERE lease_id = ANY (ARRAY(SELECT lease_id FROM expired))
