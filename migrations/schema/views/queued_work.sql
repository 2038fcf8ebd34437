-- Work with a separate row for each document of a batch, for queries that count work or look it up by document. Runs with its
-- owner's rights, as granted_generations does, because readers may not read the table work. Relies on work_pkey.
CREATE VIEW nearsim_index.queued_work WITH (security_barrier = true) AS
SELECT work.generation_id, work.stage, work.doc_id, work.queued_at, work.due_at, work.lease_id, work.attempts, work.error,
    work.set_aside_at
FROM (
    SELECT generation_id, stage, doc_id, queued_at, due_at, lease_id, attempts, error, set_aside_at
    FROM nearsim.work WHERE doc_ids IS NULL
    UNION ALL
    SELECT generation_id, stage, document.doc_id, queued_at, due_at, lease_id, attempts, error, set_aside_at
    FROM nearsim.work AS batch CROSS JOIN LATERAL unnest(batch.doc_ids) AS document (doc_id)
    WHERE batch.doc_id < 0
) AS work
WHERE (SELECT NOT row_security_active(CAST('nearsim.document' AS regclass)))
    OR work.generation_id IN (SELECT granted.generation_id FROM nearsim_index.granted_generations AS granted);

COMMENT ON VIEW nearsim_index.queued_work IS
    'Internal (used by backlog and why_not): queued work of the generations that current_user may see, with a row for each document, also of batches. A document has several rows if it was written again while its work was leased';
COMMENT ON COLUMN nearsim_index.queued_work.set_aside_at IS 'When it was set aside, after its last attempt; NULL if it was not';
