-- Queued work by generation and stage, and captured changes that are not dispatched yet. The work of a generation that is
-- being built or is paused waits, but is not due. Reads the whole queue.
CREATE VIEW nearsim.backlog WITH (security_invoker = true) AS
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
    FROM nearsim_index.queued_work AS work
    GROUP BY work.generation_id, work.stage
) AS queued
JOIN nearsim.generation USING (generation_id)
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
WHERE generation.state <> 'abandoned'
UNION ALL
SELECT collection.name, NULL, noted.collection_id, NULL, NULL, 'change', noted.waiting, noted.waiting, 0, 0, 0,
    noted.oldest_queued_at
FROM (
    SELECT change.collection_id, count(*) AS waiting, min(change.changed_at) AS oldest_queued_at
    FROM nearsim_index.visible_changes AS change GROUP BY change.collection_id
) AS noted
LEFT JOIN nearsim.collection USING (collection_id);

COMMENT ON VIEW nearsim.backlog IS
    'Queued work by generation and stage, including work of retired generations, and captured changes that are not dispatched yet (stage change)';
COMMENT ON COLUMN nearsim.backlog.collection IS 'Name of the collection; NULL if it was deleted, or for a change that concerns all collections';
COMMENT ON COLUMN nearsim.backlog.profile IS 'Name of the profile; NULL for changes';
COMMENT ON COLUMN nearsim.backlog.collection_id IS 'Number of the collection; NULL for a change that concerns all collections';
COMMENT ON COLUMN nearsim.backlog.generation_id IS 'The generation; NULL for changes';
COMMENT ON COLUMN nearsim.backlog.state IS 'State of the generation; NULL for captured changes';
COMMENT ON COLUMN nearsim.backlog.stage IS
    'change (captured, not dispatched), compare (compare the index with all documents), sign, search (for pairs), anchor (search a whole bucket) or link (update clusters)';
COMMENT ON COLUMN nearsim.backlog.waiting IS 'Number of unfinished rows, including leased rows but not rows that were set aside';
COMMENT ON COLUMN nearsim.backlog.due IS
    'Number of rows that a worker could start now: they are due and not leased, and their index is neither being built nor paused';
COMMENT ON COLUMN nearsim.backlog.leased IS 'Number of rows that a worker is processing';
COMMENT ON COLUMN nearsim.backlog.tried IS 'Number of rows that failed and will be tried again';
COMMENT ON COLUMN nearsim.backlog.set_aside IS
    'Number of rows that were set aside after repeated failures; see nearsim work list --failed';
COMMENT ON COLUMN nearsim.backlog.oldest_queued_at IS 'When the oldest row was queued, without rows that were set aside; NULL if there are no others';
