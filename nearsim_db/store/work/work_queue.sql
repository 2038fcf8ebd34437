-- name: has_changes
-- Whether there are captured changes of documents. Also true on a standby, and for a user who may not take changes, so that
-- dispatch_changes runs and fails with the reason. Reads nearsim.change up to the first such change.
SELECT EXISTS (SELECT FROM nearsim.change WHERE doc_id IS NOT NULL OR collection_id IS NULL)
    OR NOT has_table_privilege('nearsim.change', 'DELETE')
    OR CAST(current_setting('transaction_read_only') AS boolean)

-- name: dispatch_changes
-- Turn captured changes into work for every generation of their collections: to sign documents, or only to update clusters.
-- A change is taken by deleting it, never by remembering the last id or time, because changes with smaller ids or earlier
-- times may be committed later. Locking changes first, to skip those that other sessions take, costs 54 bytes of write-ahead
-- log for each, so this is left out if no other session takes changes.
-- Work that is queued already remains, and begins again from the start if it failed. Other work is inserted without ON
-- CONFLICT, which would log each row twice; the statement fails if another session queues the same work at the same time.
-- New work to sign for the generations in generation_ids is put under the worker's lease, in a batch for each generation,
-- unless the lease has expired. Returns the number of changes, how many of them concern all documents, and a row for each
-- batch. Reads nearsim.change up to the last change that is taken; relies on work_pkey.
WITH captured AS MATERIALIZED (
    SELECT ctid FROM nearsim.change WHERE doc_id IS NOT NULL OR collection_id IS NULL
    LIMIT %(batch)s {skipping_locked}
), taken AS (
    DELETE FROM nearsim.change WHERE ctid = ANY (ARRAY(SELECT ctid FROM captured))
    RETURNING collection_id, doc_id, coalesce(stage, 'sign') AS stage
), chosen AS MATERIALIZED (
    SELECT profile.collection_id, generation.generation_id,
        generation.generation_id = ANY(CAST(%(generation_ids)s AS integer[]))
            AND generation.state IN ('catching_up', 'ready', 'live', 'retired') AS is_leased
    FROM nearsim.profile JOIN nearsim.generation USING (profile_id)
    WHERE generation.state <> 'abandoned' AND profile.collection_id IN (SELECT taken.collection_id FROM taken)
    FOR KEY SHARE OF generation
), requested AS MATERIALIZED (
    SELECT DISTINCT chosen.generation_id, taken.doc_id, taken.stage, is_leased AND taken.stage = 'sign' AS is_leased,
        EXISTS (
            SELECT FROM nearsim.work
            WHERE work.generation_id = chosen.generation_id AND work.stage = taken.stage AND work.doc_id = taken.doc_id
            OFFSET 0
        ) AS is_queued
    FROM taken JOIN chosen USING (collection_id)
), renewed AS (
    UPDATE nearsim_index.lease SET beat_at = clock_timestamp() WHERE lease_id = %(lease_id)s RETURNING lease_id
), added AS (
    INSERT INTO nearsim.work (generation_id, doc_id, stage)
    SELECT generation_id, doc_id, stage
    FROM requested WHERE NOT is_queued AND NOT (is_leased AND EXISTS (SELECT FROM renewed))
    ORDER BY generation_id, stage DESC, doc_id
), batched AS (
    INSERT INTO nearsim.work (generation_id, doc_id, stage, lease_id, doc_ids)
    SELECT generation_id, CAST(-1 - random() * 1e18 AS bigint), 'sign', lease_id, array_agg(doc_id ORDER BY doc_id)
    FROM requested CROSS JOIN renewed WHERE is_leased AND NOT is_queued
    GROUP BY generation_id, lease_id
    RETURNING generation_id, doc_id, doc_ids
), repeated AS (
    INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage)
    SELECT generation_id, doc_id, stage FROM requested WHERE is_queued
    ORDER BY generation_id, stage DESC, doc_id
    {repeat_on_conflict}
)
SELECT (SELECT count(*) FROM captured), (SELECT count(*) FROM taken WHERE doc_id IS NULL), batched.generation_id,
    batched.doc_id, batched.doc_ids
FROM (VALUES (1)) AS always LEFT JOIN batched ON true

-- name: discard_indexed_changes
-- Delete captured writes that a build has indexed: the signature has the revision that was captured. All of them are kept if
-- the collection has another generation, because they become work for that generation. A generation that this snapshot does
-- not see will take its own snapshot later, which includes these writes. Reads all captured changes and all signatures.
DELETE FROM nearsim.change USING {signature} AS signature
WHERE change.collection_id = %(collection_id)s AND change.stage IS NULL
    AND signature.doc_id = change.doc_id AND signature.revision = change.revision
    AND NOT EXISTS (
        SELECT FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
        WHERE profile.collection_id = %(collection_id)s AND generation.generation_id <> {generation_id}
            AND generation.state <> 'abandoned')

-- name: discard_indexed_work
-- Delete unnecessary work to sign among the next rows of the queue: work on documents whose present revision is signed. Work
-- that failed or is under a lease remains. The caller keeps dispatchers out, so that this snapshot sees the changes they
-- took; later changes become work again. Returns the last doc_id that was examined. Relies on work_pkey and the keys.
WITH next AS MATERIALIZED (
    SELECT doc_id FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = 'sign' AND attempts = 0 AND lease_id IS NULL
        AND doc_id > %(after)s
    ORDER BY generation_id, stage, doc_id LIMIT %(batch)s
), discarded AS (
    DELETE FROM nearsim.work USING next
    JOIN {signature} AS signature USING (doc_id)
    JOIN nearsim.document USING (doc_id)
    WHERE work.generation_id = {generation_id} AND work.stage = 'sign' AND work.doc_id = next.doc_id
        AND work.attempts = 0 AND work.lease_id IS NULL
        AND document.collection_id IS NOT DISTINCT FROM %(collection_id)s AND document.revision = signature.revision
)
SELECT max(doc_id) FROM next

-- name: vacuum_changes
-- Free the space of changes that were deleted in bulk, which dispatchers would otherwise read again and again. Does not wait
-- for locks.
VACUUM (SKIP_LOCKED) nearsim.change

-- name: queue_outdated
-- Queue documents without a signature for their present revision, and signatures without a document; expired documents count
-- as missing. Relies on document_collection_doc and on the leaf's key.
INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage)
SELECT {generation_id}, coalesce(document.doc_id, signature.doc_id), 'sign'
FROM (
    SELECT doc_id, revision FROM nearsim.document
    WHERE collection_id = %(collection_id)s
        AND {is_within_age}
) AS document
FULL JOIN {signature} AS signature USING (doc_id)
WHERE document.revision IS DISTINCT FROM signature.revision
ORDER BY 2
{repeat_on_conflict}

-- name: queue_work
-- Queue documents for a stage; work that failed begins again from the start. A document that is in a leased batch gets
-- separate work beside the batch. Relies on work_pkey.
INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage, due_at)
SELECT {generation_id}, doc_id, %(stage)s, now() + make_interval(secs => %(delay)s)
FROM (SELECT DISTINCT doc_id FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS q (doc_id) ORDER BY doc_id) AS q
ON CONFLICT (generation_id, stage, doc_id) DO UPDATE SET
    attempts = 0, reached = 0, error = NULL, set_aside_at = NULL, lost_lease_id = NULL, queued_at = now(),
    due_at = least(stored.due_at, excluded.due_at)
WHERE stored.attempts > 0 OR stored.reached > 0

-- name: find_work
-- Generations and stages with work that is due, for one collection or for all; the work of a generation that is being built
-- waits. The recursive queries step through the indexes from one generation and stage with work to the next, however many
-- generations there are. ORDER BY in the lateral subqueries makes them read the index up to the first free row, whatever the
-- planner estimates. Relies on work_free and work_tried_before.
WITH RECURSIVE free_work AS (
    (SELECT generation_id, stage FROM nearsim.work WHERE attempts = 0 AND lease_id IS NULL
    ORDER BY generation_id, stage LIMIT 1)
    UNION ALL
    SELECT next.generation_id, next.stage FROM free_work CROSS JOIN LATERAL (
        SELECT generation_id, stage FROM nearsim.work
        WHERE attempts = 0 AND lease_id IS NULL AND (generation_id, stage) > (free_work.generation_id, free_work.stage)
        ORDER BY generation_id, stage LIMIT 1) AS next
), tried_work AS (
    (SELECT generation_id, stage FROM nearsim.work WHERE attempts > 0 AND set_aside_at IS NULL
    ORDER BY generation_id, stage LIMIT 1)
    UNION ALL
    SELECT next.generation_id, next.stage FROM tried_work CROSS JOIN LATERAL (
        SELECT generation_id, stage FROM nearsim.work
        WHERE attempts > 0 AND set_aside_at IS NULL
            AND (generation_id, stage) > (tried_work.generation_id, tried_work.stage)
        ORDER BY generation_id, stage LIMIT 1) AS next
)
SELECT generation.generation_id, stage.name
FROM (SELECT generation_id, stage FROM free_work UNION SELECT generation_id, stage FROM tried_work) AS queued
JOIN nearsim.generation USING (generation_id)
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
JOIN unnest(CAST(%(stages)s AS text[])) WITH ORDINALITY AS stage (name, position) ON stage.name = queued.stage
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
    AND (collection.collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
ORDER BY generation.generation_id, stage.position

-- name: take_work
-- Put the next new work of a stage, in doc_id order, under the worker's lease, unless the lease has expired. Locked rows are
-- skipped. Relies on work_free.
WITH free AS MATERIALIZED (
    SELECT ctid FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND attempts = 0 AND lease_id IS NULL
        AND due_at <= clock_timestamp()
    ORDER BY doc_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), {leased_as_batch}

-- name: take_retries
-- Put failed work, whose number of attempts is in a range, under the worker's lease for another attempt. Relies on
-- work_tried_before.
WITH free AS MATERIALIZED (
    SELECT ctid FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND attempts > 0
        AND attempts BETWEEN %(min_attempts)s AND %(max_attempts)s AND lease_id IS NULL
        AND set_aside_at IS NULL AND due_at <= clock_timestamp()
    ORDER BY attempts, doc_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), {leased_as_batch}

-- name: lock_batch
-- Lock a batch until the transaction ends; no row if its lease was lost. Relies on work_pkey.
SELECT doc_ids FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = %(batch_id)s FOR UPDATE

-- name: continue_batch
-- Turn a locked batch of signed documents into a batch of the stage search for the given documents, and delete waiting work
-- to search for them. Relies on work_pkey.
WITH replaced AS (
    DELETE FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = 'search' AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
)
UPDATE nearsim.work SET stage = 'search', doc_ids = %(doc_ids)s, attempts = 0, error = NULL, lost_lease_id = NULL
WHERE generation_id = {generation_id} AND stage = 'sign' AND doc_id = %(batch_id)s

-- name: continue_anchors
-- Queue anchors to continue after the member that each has reached; anchors that were queued again meanwhile begin from the
-- start. Relies on work_pkey.
INSERT INTO nearsim.work (generation_id, doc_id, stage, reached)
SELECT {generation_id}, doc_id, 'anchor', reached
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(reached)s AS bigint[])) AS anchor (doc_id, reached)
ORDER BY doc_id
ON CONFLICT (generation_id, stage, doc_id) DO NOTHING

-- name: finish_batch
-- Remove a batch, in the transaction that stores its result; no row if its lease was lost. Relies on work_pkey.
DELETE FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = %(batch_id)s
RETURNING doc_ids

-- name: fail_batch
-- Turn a failed batch into separate work for each of its documents, and count an attempt. The work is retried after a
-- growing delay, and set aside after the last attempt. Documents that were queued again meanwhile remain new work. Returns
-- the documents and whether each was set aside; no row if the lease was lost. Relies on work_pkey.
WITH failed AS (
    DELETE FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = %(batch_id)s
    RETURNING queued_at, CAST(attempts + 1 AS smallint) AS attempts, reached, doc_ids
)
INSERT INTO nearsim.work (generation_id, doc_id, stage, queued_at, attempts, reached, error, due_at, set_aside_at)
SELECT {generation_id}, document.doc_id, %(stage)s, queued_at, attempts, reached, %(error)s,
    clock_timestamp() + make_interval(secs => coalesce((CAST(%(delays)s AS double precision[]))[attempts], 0)),
    CASE WHEN attempts > cardinality(CAST(%(delays)s AS double precision[])) THEN clock_timestamp() END
FROM failed CROSS JOIN LATERAL unnest(doc_ids) AS document (doc_id)
ORDER BY document.doc_id
ON CONFLICT (generation_id, stage, doc_id) DO NOTHING
RETURNING doc_id, set_aside_at IS NOT NULL

-- name: has_unfinished_work
-- Whether work of a stage that was queued before a moment is still queued or under a lease. Failed work that waits for a
-- later attempt does not count; work that was postponed because its text was changing does. ORDER BY makes the planner read
-- the index, whatever it estimates, because the table itself begins with dead rows of finished work. Relies on work_pkey.
SELECT EXISTS (
    SELECT FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND queued_at <= %(before)s
        AND set_aside_at IS NULL AND (lease_id IS NOT NULL OR attempts = 0 OR due_at <= clock_timestamp())
    ORDER BY generation_id, stage, doc_id LIMIT 1)

-- name: has_work
-- Whether a generation has work that was not set aside. Relies on work_pkey.
SELECT EXISTS (
    SELECT FROM nearsim.work WHERE generation_id = {generation_id} AND set_aside_at IS NULL
    ORDER BY generation_id, stage, doc_id LIMIT 1)

-- name: vacuum_work
-- Free the space of finished work, which each batch would otherwise read again. Does not wait for locks.
VACUUM (SKIP_LOCKED) nearsim.work

-- name: count_work
-- Number of documents that are queued in a generation but not set aside, and number of documents set aside. Relies on
-- work_pkey.
SELECT count(*) FILTER (WHERE set_aside_at IS NULL), count(*) FILTER (WHERE set_aside_at IS NOT NULL)
FROM nearsim_index.queued_work WHERE generation_id = {generation_id}

-- name: list_work
-- The work of one collection or of all: first work that was set aside, then failing work, then the rest. Reads the whole
-- queue.
SELECT coalesce(document.external_id, '#' || work.doc_id), collection.name, profile.name, work.generation_id, work.stage,
    state.name, work.attempts, work.due_at, work.queued_at, holder.worker, work.error
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
JOIN nearsim_index.queued_work AS work USING (generation_id)
LEFT JOIN nearsim.document ON document.doc_id = work.doc_id AND document.collection_id = collection.collection_id
LEFT JOIN nearsim_index.visible_workers AS holder USING (lease_id)
CROSS JOIN LATERAL (
    SELECT CASE WHEN work.set_aside_at IS NOT NULL THEN 'set aside' WHEN work.lease_id IS NOT NULL THEN 'being done'
        WHEN generation.state IN ('building', 'paused') THEN 'held' WHEN work.attempts > 0 THEN 'failing' ELSE 'waiting' END
) AS state (name)
WHERE generation.state <> 'abandoned'
    AND (collection.collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
    AND (work.stage = %(stage)s OR %(stage)s IS NULL)
    AND (work.attempts > 0 OR NOT %(failed)s)
ORDER BY work.set_aside_at IS NULL, work.attempts DESC, work.generation_id, work.stage, work.doc_id

-- name: retry_work
-- Make failed and set-aside work due at once, with one attempt counted, so that it stays separate from new work. Relies on
-- work_tried_before.
WITH chosen AS MATERIALIZED (
    {failed_work}
    ORDER BY work.generation_id, work.stage, work.doc_id
    FOR UPDATE OF work
)
UPDATE nearsim.work SET set_aside_at = NULL, attempts = 1, due_at = now()
FROM chosen
WHERE work.generation_id = chosen.generation_id AND work.stage = chosen.stage AND work.doc_id = chosen.doc_id
RETURNING chosen.id

-- name: discard_work
-- Delete failed and set-aside work that is not under a lease. Relies on work_tried_before.
WITH chosen AS MATERIALIZED (
    {failed_work}
    ORDER BY work.generation_id, work.stage, work.doc_id
    FOR UPDATE OF work
)
DELETE FROM nearsim.work USING chosen
WHERE work.generation_id = chosen.generation_id AND work.stage = chosen.stage AND work.doc_id = chosen.doc_id
RETURNING chosen.id

-- name: clear_queue
-- Delete the queue of an abandoned generation. Locked work is skipped: waiting for it could deadlock, because workers lock
-- several stages in other orders. Its worker finishes this work, or it is dropped with the generation. Relies on work_pkey.
DELETE FROM nearsim.work
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM nearsim.work WHERE generation_id = {generation_id} FOR UPDATE SKIP LOCKED))
