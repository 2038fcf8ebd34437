-- The work of one collection or of all lasting ones, what was set aside first, then what failed. Reads the whole queue.
SELECT coalesce(document.external_id, '#' || work.doc_id), collection.name, profile.name, work.generation_id, work.stage,
    state.name, work.attempts, work.due_at, work.queued_at, lease.worker, work.error
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
JOIN nearsim.work USING (generation_id)
LEFT JOIN nearsim.document ON document.doc_id = work.doc_id AND document.collection_id = collection.collection_id
LEFT JOIN nearsim.lease USING (lease_id)
CROSS JOIN LATERAL (
    SELECT CASE WHEN work.set_aside_at IS NOT NULL THEN 'set aside' WHEN work.lease_id IS NOT NULL THEN 'being done'
        WHEN generation.state IN ('building', 'paused') THEN 'held' WHEN work.attempts > 0 THEN 'failing' ELSE 'waiting' END
) AS state (name)
WHERE generation.state <> 'abandoned'
    AND (collection.collection_id = %(collection_id)s OR %(collection_id)s IS NULL AND NOT collection.temporary)
    AND (work.stage = %(stage)s OR %(stage)s IS NULL)
    AND (work.attempts > 0 OR NOT %(failed)s)
ORDER BY work.set_aside_at IS NULL, work.attempts DESC, work.generation_id, work.stage, work.doc_id
