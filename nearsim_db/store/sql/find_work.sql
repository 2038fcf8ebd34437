-- The generations and stages that have work to take now, those of one collection or of all lasting ones. Work of a
-- generation that is being built waits for it. Relies on work_pkey and work_tried_before.
SELECT generation.generation_id, stage.name
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
CROSS JOIN unnest(CAST(%(stages)s AS text[])) WITH ORDINALITY AS stage (name, position)
WHERE generation.state IN ('catching_up', 'ready', 'live', 'retired')
    AND (collection.collection_id = %(collection_id)s OR %(collection_id)s IS NULL AND NOT collection.temporary)
    AND (EXISTS (
        SELECT FROM nearsim.work
        WHERE work.generation_id = generation.generation_id AND work.stage = stage.name AND work.attempts = 0
            AND work.lease_id IS NULL AND work.due_at <= clock_timestamp())
    OR EXISTS (
        SELECT FROM nearsim.work
        WHERE work.generation_id = generation.generation_id AND work.stage = stage.name AND work.attempts > 0
            AND work.lease_id IS NULL AND work.set_aside_at IS NULL AND work.due_at <= clock_timestamp()))
ORDER BY generation.generation_id, stage.position
