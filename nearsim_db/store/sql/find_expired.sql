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
