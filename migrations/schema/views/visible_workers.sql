-- Runs with its owner's rights, as granted_generations does. Under isolation a reader learns that workers run and respond, but
-- not where they run or when a batch of another tenant ended. Reads one row for each worker.
CREATE VIEW nearsim_index.visible_workers WITH (security_barrier = true) AS
SELECT lease.lease_id, CASE WHEN caller.is_limited THEN 'worker' ELSE lease.worker END AS worker,
    CASE WHEN caller.is_limited THEN 30 * trunc(silence.seconds / 30) ELSE silence.seconds END AS silent_seconds
FROM nearsim_index.lease
CROSS JOIN (SELECT row_security_active(CAST('nearsim.document' AS regclass)) AS is_limited) AS caller
CROSS JOIN LATERAL (SELECT extract(epoch FROM clock_timestamp() - lease.beat_at) AS seconds) AS silence;

COMMENT ON VIEW nearsim_index.visible_workers IS 'Internal (used by nearsim stats): processes at work, as current_user may see them';
COMMENT ON COLUMN nearsim_index.visible_workers.worker IS 'The process that holds the lease, as host:pid; under isolation always "worker"';
COMMENT ON COLUMN nearsim_index.visible_workers.silent_seconds IS 'Seconds since the last heartbeat; under isolation rounded down to a multiple of 30';
