-- name: lock_generations
-- Lock the rows of a profile's generations until the transaction ends, in order, so that sessions do not deadlock. Reads
-- all generations.
SELECT generation_id FROM nearsim.generation WHERE profile_id = %(profile_id)s ORDER BY generation_id FOR NO KEY UPDATE

-- name: lock_signing
-- Whether the build of a generation is in the stage sign; locks the row, so that it stays there until the transaction ends.
-- Relies on generation_pkey.
SELECT state = 'building' AND stage = 'sign' FROM nearsim.generation WHERE generation_id = {generation_id} FOR SHARE

-- name: mark_ready
-- Mark generations that are catching up as ready if none of their work or changes has waited for two seconds. Failed and
-- set-aside work does not count. Relies on work_pkey.
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
-- Promote a generation in one call, so that in autocommit it is a transaction of its own.
SELECT state, retired_id FROM nearsim.promote_generation(%(generation_id)s, CAST(%(before)s AS text[]), %(wait)s)

-- name: increment_figures
-- Add to the figures of a generation. Relies on generation_pkey.
UPDATE nearsim.generation SET figures = figures || (
    SELECT jsonb_object_agg(key, coalesce(CAST(figures ->> key AS bigint), 0) + CAST(value AS bigint))
    FROM jsonb_each_text(%(counts)s))
WHERE generation_id = %(generation_id)s

-- name: create_generation
-- Create a generation, in state building, and read it. The sequence of its number decides which tables it shares.
WITH created AS (
INSERT INTO nearsim.generation
    (generation_id, profile_id, recipe, fingerprint, bands, rows, expected_recall, replaces, detached)
OVERRIDING SYSTEM VALUE VALUES
    (nextval(CAST(%(sequence)s AS regclass)), %(profile_id)s, %(recipe)s, %(fingerprint)s, %(bands)s, %(rows)s,
        %(expected_recall)s, %(replaces)s, %(detached)s)
RETURNING *
)
{read}

-- name: give_own_tables
-- Begin a first build again under a number with tables of its own; no row if it has advanced beyond the stage sign. Relies
-- on generation_pkey.
WITH former AS (
    DELETE FROM nearsim.generation
    WHERE generation_id = %(generation_id)s AND state = 'building' AND stage = 'sign' RETURNING *
)
INSERT INTO nearsim.generation
    (generation_id, profile_id, recipe, fingerprint, created_at, bands, rows, expected_recall, replaces, detached)
OVERRIDING SYSTEM VALUE
SELECT nextval('nearsim.own_generation'), profile_id, recipe, fingerprint, created_at, bands, rows,
    expected_recall, replaces, detached
FROM former
RETURNING generation_id

-- name: list_generations
-- Generations by profile and age: one, those of a collection, or all. Relies on generation_pkey, on profile_name_key and
-- on generation_profile.
SELECT generation_id, profile_id, profile.name, collection_id, collection.name, state, stage,
    recipe, fingerprint, figures, generation.created_at, live_at, bands, rows, replaces, detached,
    distributed, dropping, ready_at, retired_at, common_shingles, frequencies
FROM {generations} AS generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
WHERE {chosen}
ORDER BY profile.name, generation.created_at, generation_id

-- name: list_grown
-- Live generations that share tables and have more than `max_documents` signatures; at most one more is read of each. Relies on
-- generation_one_live and on the key of the signatures.
SELECT generation_id FROM nearsim.generation
WHERE state = 'live' AND EXISTS (
    SELECT FROM nearsim_index.signature_shared AS signature
    WHERE signature.generation_id = generation.generation_id OFFSET %(max_documents)s)

-- name: find_newest_live
-- Some live generations, the newest first. Relies on generation_pkey.
SELECT generation_id FROM nearsim.generation WHERE state = 'live' ORDER BY generation_id DESC LIMIT %(limit)s

-- name: is_fresh
-- Whether there are no documents and no generations except first builds. Reads all generations.
SELECT NOT EXISTS (SELECT FROM nearsim.document)
    AND NOT EXISTS (SELECT FROM nearsim.generation WHERE state <> 'building' OR replaces IS NOT NULL)

-- name: find_generations
-- The generations, of some, that exist. Relies on generation_pkey.
SELECT generation_id FROM nearsim.generation WHERE generation_id = ANY(CAST(%(generation_ids)s AS integer[]))

-- name: read_generation_state
-- State of a generation. Relies on generation_pkey.
SELECT state FROM nearsim.generation WHERE generation_id = %(generation_id)s

-- name: change_state
-- Move a generation from one of some states to another; no row if it is in none of them. Relies on generation_pkey.
UPDATE nearsim.generation SET state = %(state)s,
    ready_at = CASE WHEN %(caught_up)s THEN clock_timestamp() ELSE ready_at END,
    dropping = coalesce(CAST(%(drop)s AS boolean), dropping)
WHERE generation_id = %(generation_id)s AND state = ANY(CAST(%(before)s AS text[]))
RETURNING generation_id

-- name: finish_build
-- End a build: the first generation of a profile becomes live, another one catches up; no row if it is not being built. One
-- update sets the state and the other results, so that a small build adds one version of the row. Relies on
-- generation_pkey.
UPDATE nearsim.generation SET state = CASE WHEN replaces IS NULL THEN 'live' ELSE 'catching_up' END, stage = 'done',
    live_at = CASE WHEN replaces IS NULL THEN now() END, figures = figures || %(figures)s
WHERE generation_id = %(generation_id)s AND state = 'building'
RETURNING generation_id

-- name: mark_abandoned
-- Mark generations as abandoned. Relies on generation_pkey.
UPDATE nearsim.generation SET state = 'abandoned' WHERE generation_id = ANY(CAST(%(generation_ids)s AS integer[]))

-- name: set_detached
-- Leave a build to the workers, or take it from them. Relies on generation_pkey.
UPDATE nearsim.generation SET detached = %(detached)s WHERE generation_id = %(generation_id)s

-- name: set_stage
-- Record the progress of a build. Relies on generation_pkey.
UPDATE nearsim.generation SET stage = %(stage)s
WHERE generation_id = %(generation_id)s

-- name: set_common_shingles
-- Store the shingles that a generation leaves out. Relies on generation_pkey.
UPDATE nearsim.generation SET common_shingles = %(common)s WHERE generation_id = %(generation_id)s

-- name: set_frequencies
-- Store the document frequencies by which a generation weights features. Relies on generation_pkey.
UPDATE nearsim.generation SET frequencies = %(frequencies)s WHERE generation_id = %(generation_id)s

-- name: add_figures
-- Add figures to those of a generation. Relies on generation_pkey.
UPDATE nearsim.generation SET figures = figures || %(figures)s WHERE generation_id = %(generation_id)s

-- name: delete_generation
-- Delete the row of a generation. Relies on generation_pkey.
DELETE FROM nearsim.generation WHERE generation_id = %(generation_id)s
