-- Those of some documents that have work queued, or were written since work was last made of it; 0 where all may have
-- changed. Relies on work_pkey; reads all changes that are not work yet.
SELECT work.doc_id
FROM unnest(CAST(%(stages)s AS text[])) AS stage (name)
JOIN nearsim.work ON work.generation_id = {generation_id} AND work.stage = stage.name
WHERE work.doc_id = 0 OR work.doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
UNION
SELECT coalesce(doc_id, 0) FROM nearsim.change
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
    OR doc_id IS NULL AND external_id IS NULL AND coalesce(collection_id, %(collection_id)s) = %(collection_id)s
