-- name: lock_generations
-- Lock the states of a profile's generations until the transaction ends, in one order to avoid deadlocks. Reads all
-- generations.
SELECT generation_id FROM nearsim.generation WHERE profile_id = %(profile_id)s ORDER BY generation_id FOR NO KEY UPDATE

-- name: lock_signing
-- Whether the build of a generation is in its stage sign, in which it stays until the transaction ends. Relies on
-- generation_pkey.
SELECT state = 'building' AND stage = 'sign' FROM nearsim.generation WHERE generation_id = {generation_id} FOR SHARE

-- name: mark_ready
-- Mark generations that are catching up as ready once no work has waited for two seconds. Failed and set-aside work
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

-- name: promote_generation
-- Promote a generation, in one call that is a transaction.
SELECT state, retired_id FROM nearsim.promote_generation(%(generation_id)s, CAST(%(before)s AS text[]), %(wait)s)

-- name: increment_figures
-- Add to the figures of a generation. Relies on generation_pkey.
UPDATE nearsim.generation SET figures = figures || (
    SELECT jsonb_object_agg(key, coalesce(CAST(figures ->> key AS bigint), 0) + CAST(value AS bigint))
    FROM jsonb_each_text(%(counted)s))
WHERE generation_id = %(generation_id)s
