-- name: take_batch
-- Turn the next work to sign, in doc_id order, into a batch under the worker's lease if that has not expired; locked rows
-- are skipped. Relies on work_free.
WITH renewed AS (
    UPDATE nearsim_index.lease SET beat_at = clock_timestamp() WHERE lease_id = %(lease_id)s RETURNING lease_id
), free AS MATERIALIZED (
    SELECT ctid FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = 'sign' AND attempts = 0 AND lease_id IS NULL
        AND due_at <= clock_timestamp()
    ORDER BY doc_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM nearsim.work USING renewed
    WHERE work.ctid = ANY (ARRAY(SELECT ctid FROM free))
    RETURNING work.doc_id, work.queued_at, renewed.lease_id
)
INSERT INTO nearsim.work (generation_id, doc_id, stage, lease_id, queued_at, doc_ids)
SELECT {generation_id}, CAST(-1 - random() * 1e18 AS bigint), 'sign', lease_id, min(queued_at),
    array_agg(doc_id ORDER BY doc_id)
FROM taken GROUP BY lease_id
RETURNING doc_id, doc_ids

-- name: lock_batch
-- Lock a batch of documents to sign until the transaction ends; no row if its lease was lost. Relies on work_pkey.
SELECT doc_ids FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = 'sign' AND doc_id = %(batch_id)s FOR UPDATE

-- name: continue_batch
-- Turn a locked batch into the search for documents, which replaces work to search them that waits. Relies on work_pkey.
WITH replaced AS (
    DELETE FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = 'search' AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        AND lease_id IS NULL
)
UPDATE nearsim.work SET stage = 'search', doc_ids = %(doc_ids)s
WHERE generation_id = {generation_id} AND stage = 'sign' AND doc_id = %(batch_id)s

-- name: finish_batch
-- Remove a batch in the transaction that stores its result. Relies on work_pkey.
DELETE FROM nearsim.work
WHERE generation_id = {generation_id} AND stage IN ('sign', 'search') AND doc_id = %(batch_id)s

-- name: split_batches
-- Turn one batch, or those of some leases, into work of their documents under the lease; what is queued already is
-- repeated. Returns stage and documents of each. Reads the whole queue; relies on work_pkey.
WITH chosen AS MATERIALIZED (
    SELECT generation_id, stage, doc_id FROM nearsim.work
    WHERE doc_ids IS NOT NULL AND (doc_id = %(batch_id)s OR lease_id = ANY(CAST(%(lease_ids)s AS integer[])))
    ORDER BY generation_id, stage, doc_id FOR UPDATE {skipping_locked}
), batch AS (
    DELETE FROM nearsim.work USING chosen
    WHERE work.generation_id = chosen.generation_id AND work.stage = chosen.stage AND work.doc_id = chosen.doc_id
    RETURNING work.generation_id, work.stage, work.lease_id, work.queued_at, work.doc_ids
), split AS (
    INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage, lease_id, queued_at)
    SELECT generation_id, document.doc_id, stage, min(lease_id), min(queued_at)
    FROM batch CROSS JOIN LATERAL unnest(doc_ids) AS document (doc_id)
    GROUP BY generation_id, stage, document.doc_id
    ORDER BY generation_id, stage DESC, document.doc_id
    ON CONFLICT (generation_id, stage, doc_id) DO UPDATE SET
        again = stored.lease_id IS NOT NULL, attempts = 0, reached = 0, error = NULL, set_aside_at = NULL, due_at = now()
    WHERE stored.lease_id IS NOT NULL OR stored.attempts > 0
)
SELECT stage, doc_ids FROM batch

-- name: purge_batches
-- Take documents out of the batches in some stages; waits for transactions that store results. Returns how many. Relies
-- on work_pkey.
WITH holding AS MATERIALIZED (
    SELECT stage, doc_id, doc_ids FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = ANY(CAST(%(stages)s AS text[])) AND doc_id < 0
        AND doc_ids && CAST(%(doc_ids)s AS bigint[])
    ORDER BY stage, doc_id FOR UPDATE
), purged AS (
    UPDATE nearsim.work SET doc_ids = ARRAY(
        SELECT document.doc_id FROM unnest(holding.doc_ids) WITH ORDINALITY AS document (doc_id, place)
        WHERE document.doc_id <> ALL (CAST(%(doc_ids)s AS bigint[])) ORDER BY place)
    FROM holding
    WHERE work.generation_id = {generation_id} AND work.stage = holding.stage AND work.doc_id = holding.doc_id
    RETURNING cardinality(holding.doc_ids) - cardinality(work.doc_ids) AS documents
)
SELECT coalesce(sum(documents), 0) FROM purged
