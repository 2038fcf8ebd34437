-- name: begin_retention
-- Record the start of a build. The build signs no document that has already expired, so sweeps need not look further back.
-- Relies on generation_pkey.
UPDATE nearsim.generation SET expired_through = now() - nearsim.retention_of(recipe)
WHERE generation_id = {generation_id} AND expired_through IS NULL

-- name: read_retention
-- The cutoff of the last sweep, and the cutoff now; no row for a generation that is not maintained, or that keeps documents
-- of any age. Relies on generation_pkey.
SELECT expired_through, clock_timestamp() - nearsim.retention_of(recipe)
FROM nearsim.generation
WHERE generation_id = {generation_id} AND state IN ('catching_up', 'ready', 'live', 'retired')
    AND nearsim.retention_of(recipe) IS NOT NULL

-- name: queue_expired
-- Queue documents that expired since the previous sweep, as if they had been deleted. Unsigned documents are queued too,
-- because a worker may be storing their signature now. Relies on document_age, so that documents that expired before are not
-- read.
INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage)
SELECT {generation_id}, doc_id, 'sign' FROM nearsim.document
WHERE collection_id = %(collection_id)s
    AND coalesce(published_at, created_at) >= coalesce(CAST(%(after)s AS timestamptz), '-infinity')
    AND coalesce(published_at, created_at) < %(through)s
ORDER BY doc_id
{repeat_on_conflict}

-- name: advance_retention
-- Record the cutoff of a finished sweep. Relies on generation_pkey.
UPDATE nearsim.generation SET expired_through = %(through)s WHERE generation_id = {generation_id}

-- name: delete_expired_documents
-- Delete expired documents of a live generation's collection, the oldest first; nothing if the collection has an attached
-- table. Rows that another session has locked are skipped, and deleted by the next call. Relies on document_age.
WITH expired AS (
    SELECT document.doc_id FROM nearsim.document
    WHERE document.collection_id = %(collection_id)s
        AND coalesce(document.published_at, document.created_at)
            < (SELECT now() - nearsim.retention_of(recipe) FROM nearsim.generation
                WHERE generation_id = {generation_id} AND state = 'live')
        AND NOT EXISTS (SELECT FROM nearsim_index.attachment WHERE collection_id = %(collection_id)s)
    ORDER BY coalesce(document.published_at, document.created_at)
    LIMIT %(limit)s
    FOR UPDATE OF document SKIP LOCKED
)
DELETE FROM nearsim.document USING expired WHERE document.doc_id = expired.doc_id
