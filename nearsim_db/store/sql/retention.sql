-- name: begin_window
-- From here on a generation is built: what it will sign is no older than this, so no sweep has to look further back.
UPDATE nearsim.generation SET expired_through = now() - make_interval(secs => CAST(%(age)s AS double precision))
WHERE generation_id = {generation_id} AND expired_through IS NULL

-- name: read_window
-- How far sweeps have come, and up to which moment documents are outside of the window now; nothing for
-- a generation that is not worked on.
SELECT expired_through, clock_timestamp() - make_interval(secs => CAST(%(age)s AS double precision))
FROM nearsim.generation WHERE generation_id = {generation_id} AND state IN ('catching_up', 'ready', 'live', 'retired')

-- name: find_expired
-- Signed documents that have left the window since the sweep before, those with the largest doc_id first. Relies on
-- document_age and on the leaf's key: what left earlier is not looked at, and the LIMIT keeps signatures from being read
-- from end to end.
SELECT expired.doc_id FROM (
    SELECT doc_id FROM nearsim.document
    WHERE collection_id = %(collection_id)s
        AND coalesce(published_at, created_at) >= coalesce(CAST(%(after)s AS timestamptz), '-infinity')
        AND coalesce(published_at, created_at) < %(through)s
) AS expired
CROSS JOIN LATERAL (SELECT FROM {signature} AS signature WHERE signature.doc_id = expired.doc_id LIMIT 1) AS signed
ORDER BY expired.doc_id DESC

-- name: move_window
-- A sweep has taken out what is older than this.
UPDATE nearsim.generation SET expired_through = %(through)s WHERE generation_id = {generation_id}
