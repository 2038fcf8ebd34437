-- Queue documents for a stage; what a worker is at right now will be done again. Relies on work_pkey.
INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage, due_at)
SELECT {generation_id}, doc_id, %(stage)s, now() + make_interval(secs => %(delay)s)
FROM (SELECT DISTINCT doc_id FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS q (doc_id) ORDER BY doc_id) AS q
ON CONFLICT (generation_id, stage, doc_id) DO UPDATE SET
    again = stored.lease_id IS NOT NULL, attempts = 0, reached = 0, error = NULL, set_aside_at = NULL,
    due_at = least(stored.due_at, excluded.due_at),
    queued_at = CASE WHEN stored.lease_id IS NULL THEN now() ELSE stored.queued_at END
WHERE stored.lease_id IS NOT NULL OR stored.attempts > 0 OR stored.reached > 0
