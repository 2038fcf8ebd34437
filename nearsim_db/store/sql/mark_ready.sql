-- Generations that are catching up, of which no work has waited for two seconds, are ready. What failed or was set aside
-- does not count. Relies on work_not_tried.
UPDATE nearsim.generation SET state = 'ready', ready_at = clock_timestamp()
FROM nearsim.profile
WHERE generation.state = 'catching_up' AND profile.profile_id = generation.profile_id
    AND NOT EXISTS (
        SELECT FROM nearsim.work
        WHERE work.generation_id = generation.generation_id AND work.attempts = 0
            AND work.queued_at < clock_timestamp() - interval '2 seconds')
    AND NOT EXISTS (
        SELECT FROM nearsim.change
        WHERE (change.collection_id = profile.collection_id OR change.collection_id IS NULL)
            AND change.changed_at < clock_timestamp() - interval '2 seconds')
RETURNING generation.generation_id
