-- name: read_backlog
-- The work of one collection or of all: waiting documents by stage, documents set aside, age of the oldest work in seconds,
-- captured changes, workers, work that is held (until a build is finished or resumed, or because it cannot be done here),
-- attached tables, and attached tables with a recorded trouble. Abandoned generations do not count. Work that was queued
-- during a build counts for the age only after the generation has caught up. An attached table counts for the age while a
-- requested sweep is due after its first sweep, or while it has a trouble. Reads what the view backlog reads, and all
-- attachments.
WITH queued AS MATERIALIZED (
    SELECT stage, CAST(waiting AS integer) AS waiting, CAST(set_aside AS integer) AS set_aside,
        CASE WHEN state IS DISTINCT FROM 'catching_up' THEN oldest_queued_at END AS oldest,
        coalesce(state IN ('building', 'paused') OR generation_id = ANY(CAST(%(without)s AS integer[])), false) AS is_held
    FROM nearsim.backlog
    WHERE collection_id = %(collection_id)s OR %(collection_id)s IS NULL OR collection_id IS NULL
), attached AS (
    SELECT count(*) AS counted, count(*) FILTER (WHERE trouble IS NOT NULL) AS troubled,
        min(coalesce(troubled_at, wanted_at)) FILTER (WHERE trouble IS NOT NULL OR swept_at < wanted_at) AS oldest
    FROM nearsim_index.attachment
    WHERE (collection_id = %(collection_id)s OR %(collection_id)s IS NULL) AND NOT detaching
)
SELECT ARRAY(
        SELECT coalesce((SELECT sum(waiting) FROM queued WHERE queued.stage = stages.stage AND NOT is_held), 0)
        FROM unnest(CAST(%(stages)s AS text[])) WITH ORDINALITY AS stages (stage, position) ORDER BY position),
    (SELECT coalesce(sum(set_aside), 0) FROM queued),
    extract(epoch FROM coalesce(clock_timestamp()
        - least((SELECT min(oldest) FROM queued WHERE NOT is_held), attached.oldest), interval '0')),
    (SELECT coalesce(sum(waiting), 0) FROM queued WHERE stage = 'change'),
    (SELECT count(*) FROM nearsim_index.visible_workers),
    (SELECT coalesce(sum(waiting), 0) FROM queued WHERE is_held),
    attached.counted, attached.troubled
FROM attached

-- name: count_changes
-- Number of captured changes that are not dispatched, for one collection or for all; a change that concerns all collections
-- counts for each of them. Reads all changes.
SELECT count(*) FROM nearsim_index.visible_changes AS change LEFT JOIN nearsim.collection USING (collection_id)
WHERE change.collection_id IS NULL OR collection_id = %(collection_id)s
    OR %(collection_id)s IS NULL AND collection.name IS NOT NULL

-- name: list_idle_triggers
-- Those of the named triggers that are missing or disabled on nearsim.document. Reads only the catalog.
SELECT name FROM unnest(CAST(%(names)s AS text[])) AS name
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_trigger
    WHERE tgrelid = to_regclass('nearsim.document') AND tgname = name AND tgenabled IN ('O', 'A'))

-- name: has_remaining_work
-- Whether anything remains to be done in one collection or in all, apart from work that was set aside: changes to dispatch,
-- generations to build (first generations of collections with documents, and detached replacements), work of generations
-- that are not being built, and sweeps of attached tables. Relies on work_pkey.
WITH chosen AS (
    SELECT generation_id, state, collection_id, replaces, detached
    FROM nearsim.generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE (collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
        AND state IN ('building', 'catching_up', 'ready', 'live', 'retired')
        AND generation_id <> ALL (CAST(%(without)s AS integer[]))
)
SELECT EXISTS (
        SELECT FROM nearsim.change
        WHERE collection_id = %(collection_id)s OR %(collection_id)s IS NULL OR collection_id IS NULL)
    OR EXISTS (
        SELECT FROM chosen WHERE state = 'building' AND replaces IS NULL
            AND EXISTS (SELECT FROM nearsim.document WHERE document.collection_id = chosen.collection_id))
    OR EXISTS (SELECT FROM chosen WHERE state = 'building' AND detached OR state = 'catching_up')
    OR EXISTS (
        SELECT FROM chosen JOIN nearsim.work USING (generation_id) WHERE state <> 'building' AND set_aside_at IS NULL)
    OR EXISTS (
        SELECT FROM nearsim_index.attachment
        WHERE (collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
            AND (swept_at < wanted_at) IS NOT FALSE AND NOT detaching AND trouble IS NULL)
