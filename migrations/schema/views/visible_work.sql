-- Runs with its owner's rights, as granted_generations does: readers may not read work, nor through queued_work. Relies on
-- work_pkey.
CREATE VIEW nearsim_index.visible_work WITH (security_barrier = true) AS
SELECT work.generation_id, work.stage, work.doc_id, work.set_aside_at
FROM (
    SELECT generation_id, stage, doc_id, set_aside_at FROM nearsim.work WHERE doc_ids IS NULL
    UNION ALL
    SELECT generation_id, stage, unnest(doc_ids), set_aside_at FROM nearsim.work WHERE doc_id < 0
) AS work
WHERE (SELECT NOT row_security_active(CAST('nearsim.document' AS regclass)))
    OR work.generation_id IN (SELECT granted.generation_id FROM nearsim_index.granted_generations AS granted);

COMMENT ON VIEW nearsim_index.visible_work IS
    'Internal (used by why_not): queued work of the generations that current_user may see';
COMMENT ON COLUMN nearsim_index.visible_work.generation_id IS 'The generation';
COMMENT ON COLUMN nearsim_index.visible_work.stage IS 'Stage of the work';
COMMENT ON COLUMN nearsim_index.visible_work.doc_id IS 'The document; 0 for the whole index';
COMMENT ON COLUMN nearsim_index.visible_work.set_aside_at IS 'When it was set aside after its last attempt; NULL if it was not';
