-- The generations and stages that have work to take now, those of one collection or of all lasting ones. Work of a
-- generation that is being built waits for it. The order makes both queries walk their index up to the first row that is
-- free, whatever the planner thinks of a queue's size. Relies on work_not_tried and
-- work_tried_before.
SELECT generation.generation_id, stage.name
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
CROSS JOIN unnest(CAST(%(stages)s AS text[])) WITH ORDINALITY AS stage (name, position)
CROSS JOIN LATERAL (
    (SELECT FROM nearsim.work
    WHERE work.generation_id = generation.generation_id AND work.stage = stage.name AND work.attempts = 0
        AND work.lease_id IS NULL AND work.due_at <= clock_timestamp()
    ORDER BY work.generation_id, work.stage, work.doc_id LIMIT 1)
    UNION ALL
    (SELECT FROM nearsim.work
    WHERE work.generation_id = generation.generation_id AND work.stage = stage.name AND work.attempts > 0
        AND work.lease_id IS NULL AND work.set_aside_at IS NULL AND work.due_at <= clock_timestamp()
    ORDER BY work.generation_id, work.stage, work.attempts, work.doc_id LIMIT 1)
    LIMIT 1
) AS free
WHERE generation.state IN ('catching_up', 'ready', 'live', 'retired')
    AND (collection.collection_id = %(collection_id)s OR %(collection_id)s IS NULL AND NOT collection.temporary)
ORDER BY generation.generation_id, stage.position
