-- name: begin_retention
-- Mark the start of a build: it signs no document past retention now, so no sweep has to look further back. Relies on
-- generation_pkey.
UPDATE nearsim.generation SET expired_through = now() - make_interval(secs => CAST(%(age)s AS double precision))
WHERE generation_id = {generation_id} AND expired_through IS NULL

-- name: read_retention
-- The moment up to which sweeps are done, and the present cutoff; no row for a generation that is not maintained.
-- Relies on generation_pkey.
SELECT expired_through, clock_timestamp() - make_interval(secs => CAST(%(age)s AS double precision))
FROM nearsim.generation WHERE generation_id = {generation_id} AND state IN ('catching_up', 'ready', 'live', 'retired')

-- name: find_expired
-- Signed documents past retention since the previous sweep, largest doc_id first. Relies on document_age and on the
-- leaf's key: older ones are not read, and LIMIT prevents a scan of the signatures.
SELECT expired.doc_id FROM (
    SELECT doc_id FROM nearsim.document
    WHERE collection_id = %(collection_id)s
        AND coalesce(published_at, created_at) >= coalesce(CAST(%(after)s AS timestamptz), '-infinity')
        AND coalesce(published_at, created_at) < %(through)s
) AS expired
CROSS JOIN LATERAL (SELECT FROM {signature} AS signature WHERE signature.doc_id = expired.doc_id LIMIT 1) AS signed
ORDER BY expired.doc_id DESC

-- name: advance_retention
-- Record the cutoff of a finished sweep. Relies on generation_pkey.
UPDATE nearsim.generation SET expired_through = %(through)s WHERE generation_id = {generation_id}

-- name: delete_expired_documents
-- Delete documents of a live generation's collection that are older than an age, the oldest first; none if the collection
-- is attached to a table. Rows that another session has locked are left to the next call. Relies on document_age.
WITH expired AS (
    SELECT document.doc_id FROM nearsim.document
    WHERE document.collection_id = %(collection_id)s
        AND coalesce(document.published_at, document.created_at)
            < now() - make_interval(secs => CAST(%(age)s AS double precision))
        AND EXISTS (SELECT FROM nearsim.generation WHERE generation_id = %(generation_id)s AND state = 'live')
        AND NOT EXISTS (SELECT FROM nearsim_index.attachment WHERE collection_id = %(collection_id)s)
    ORDER BY coalesce(document.published_at, document.created_at)
    LIMIT %(most)s
    FOR UPDATE OF document SKIP LOCKED
)
DELETE FROM nearsim.document USING expired WHERE document.doc_id = expired.doc_id
