-- The view of 0006: what is queued for an index that is being built, or whose build is paused, nobody could begin now.
CREATE OR REPLACE VIEW nearsim.backlog WITH (security_invoker = true) AS
SELECT collection.name AS collection, profile.name AS profile, collection.collection_id, generation.generation_id,
    generation.state, queued.stage, queued.waiting,
    CASE WHEN generation.state IN ('building', 'paused') THEN 0 ELSE queued.due END AS due, queued.leased, queued.tried, queued.set_aside,
    queued.oldest_queued_at
FROM (
    SELECT work.generation_id, work.stage, count(*) FILTER (WHERE work.set_aside_at IS NULL) AS waiting,
        count(*) FILTER (WHERE work.set_aside_at IS NULL AND work.lease_id IS NULL AND work.due_at <= now()) AS due,
        count(work.lease_id) AS leased,
        count(*) FILTER (WHERE work.set_aside_at IS NULL AND work.attempts > 0) AS tried,
        count(work.set_aside_at) AS set_aside,
        min(work.queued_at) FILTER (WHERE work.set_aside_at IS NULL) AS oldest_queued_at
    FROM nearsim.work
    GROUP BY work.generation_id, work.stage
) AS queued
JOIN nearsim.generation USING (generation_id)
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
WHERE NOT collection.temporary AND generation.state <> 'abandoned'
UNION ALL
SELECT collection.name, NULL, noted.collection_id, NULL, NULL, 'change', noted.waiting, noted.waiting, 0, 0, 0,
    noted.oldest_queued_at
FROM (
    SELECT change.collection_id, count(*) AS waiting, min(change.changed_at) AS oldest_queued_at
    FROM nearsim.change GROUP BY change.collection_id
) AS noted
LEFT JOIN nearsim.collection USING (collection_id);
COMMENT ON COLUMN nearsim.backlog.due IS
    'How much of it nobody is at and could begin now; none of what waits for an index to be built';
