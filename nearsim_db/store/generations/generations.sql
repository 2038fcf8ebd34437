-- name: lock_generations
-- Lock the rows of all generations of a profile until the transaction ends. All sessions lock them in the same order, so
-- that they do not deadlock. Reads all generations.
SELECT generation_id FROM nearsim.generation WHERE profile_id = %(profile_id)s ORDER BY generation_id FOR NO KEY UPDATE

-- name: lock_signing
-- Read whether the build of a generation is in the stage sign, and lock the row, so that it stays in this stage until the
-- transaction ends. Relies on generation_pkey.
SELECT state = 'building' AND stage = 'sign' FROM nearsim.generation WHERE generation_id = {generation_id} FOR SHARE

-- name: mark_ready
-- Mark generations that are catching up as ready if none of their work, and no change of their documents, has waited for
-- two seconds. Work that has failed or was set aside does not count. Relies on work_pkey.
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
-- Promote a generation. This is a single call, so that it is a transaction of its own if the connection is in autocommit
-- mode.
SELECT state, retired_id FROM nearsim.promote_generation(%(generation_id)s, CAST(%(before)s AS text[]), %(wait)s)

-- name: increment_figures
-- Increment figures of a generation. Relies on generation_pkey.
UPDATE nearsim.generation SET figures = figures || (
    SELECT jsonb_object_agg(key, coalesce(CAST(figures ->> key AS bigint), 0) + CAST(value AS bigint))
    FROM jsonb_each_text(%(counts)s))
WHERE generation_id = %(generation_id)s

-- name: create_generation
-- Create a generation in the state building, and read it. The sequence that its number is drawn from decides which tables
-- it shares.
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
-- Begin a first build again under a new number, which gives it tables of its own. Returns no row if the build has passed
-- the stage sign. Relies on generation_pkey.
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
-- Read the generations that fulfil a condition, in the order of profile names and age. Relies on generation_pkey, on
-- profile_name_key and on generation_profile.
SELECT generation_id, profile_id, profile.name, collection_id, collection.name, state, stage,
    recipe, fingerprint, figures, generation.created_at, live_at, bands, rows, replaces, detached,
    distributed, dropping, ready_at, retired_at, common_shingles, frequencies
FROM {generations} AS generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
WHERE {chosen}
ORDER BY profile.name, generation.created_at, generation_id

-- name: list_grown
-- Find live generations that share tables and have more than `max_documents` signatures. Of each generation, at most one
-- signature more than this number is read. Relies on generation_one_live and on the key of the signatures.
SELECT generation_id FROM nearsim.generation
WHERE state = 'live' AND EXISTS (
    SELECT FROM nearsim_index.signature_shared AS signature
    WHERE signature.generation_id = generation.generation_id OFFSET %(max_documents)s)

-- name: find_newest_live
-- Read up to `limit` live generations, the newest first. Relies on generation_pkey.
SELECT generation_id FROM nearsim.generation WHERE state = 'live' ORDER BY generation_id DESC LIMIT %(limit)s

-- name: is_fresh
-- Read whether there are neither documents nor generations, except first builds. Reads all generations.
SELECT NOT EXISTS (SELECT FROM nearsim.document)
    AND NOT EXISTS (SELECT FROM nearsim.generation WHERE state <> 'building' OR replaces IS NOT NULL)

-- name: find_generations
-- Read which of the given generations exist. Relies on generation_pkey.
SELECT generation_id FROM nearsim.generation WHERE generation_id = ANY(CAST(%(generation_ids)s AS integer[]))

-- name: read_generation_state
-- Read the state of a generation. Relies on generation_pkey.
SELECT state FROM nearsim.generation WHERE generation_id = %(generation_id)s

-- name: change_state
-- Move a generation from one of the states `before` to another. Returns no row if it is in none of them. Relies on
-- generation_pkey.
UPDATE nearsim.generation SET state = %(state)s,
    ready_at = CASE WHEN %(caught_up)s THEN clock_timestamp() ELSE ready_at END,
    dropping = coalesce(CAST(%(drop)s AS boolean), dropping)
WHERE generation_id = %(generation_id)s AND state = ANY(CAST(%(before)s AS text[]))
RETURNING generation_id

-- name: finish_build
-- End a build: the first generation of a profile becomes live, and any other begins to catch up. Returns no row if the
-- generation is not being built. A single update sets the state and all other results, so that a small build adds only one
-- version of the row. Relies on generation_pkey.
UPDATE nearsim.generation SET state = CASE WHEN replaces IS NULL THEN 'live' ELSE 'catching_up' END, stage = 'done',
    live_at = CASE WHEN replaces IS NULL THEN now() END, figures = figures || %(figures)s
WHERE generation_id = %(generation_id)s AND state = 'building'
RETURNING generation_id

-- name: mark_abandoned
-- Mark generations as abandoned. Relies on generation_pkey.
UPDATE nearsim.generation SET state = 'abandoned' WHERE generation_id = ANY(CAST(%(generation_ids)s AS integer[]))

-- name: set_detached
-- Leave a build to the workers, or take it back from them. Relies on generation_pkey.
UPDATE nearsim.generation SET detached = %(detached)s WHERE generation_id = %(generation_id)s

-- name: set_stage
-- Record the stage that a build has reached. Relies on generation_pkey.
UPDATE nearsim.generation SET stage = %(stage)s
WHERE generation_id = %(generation_id)s

-- name: set_common_shingles
-- Store the shingles that a generation leaves out. Relies on generation_pkey.
UPDATE nearsim.generation SET common_shingles = %(common)s WHERE generation_id = %(generation_id)s

-- name: set_frequencies
-- Store the document frequencies by which a generation weights features. Relies on generation_pkey.
UPDATE nearsim.generation SET frequencies = %(frequencies)s WHERE generation_id = %(generation_id)s

-- name: add_figures
-- Record figures of a generation in addition to those it has; a figure of the same name is replaced. Relies on
-- generation_pkey.
UPDATE nearsim.generation SET figures = figures || %(figures)s WHERE generation_id = %(generation_id)s

-- name: delete_generation
-- Delete the row of a generation. Relies on generation_pkey.
DELETE FROM nearsim.generation WHERE generation_id = %(generation_id)s
