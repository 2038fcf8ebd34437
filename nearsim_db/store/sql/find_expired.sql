-- Signed documents that have left the window since the sweep before, those with the largest doc_id first. Relies on
-- document_age and on the leaf's key; what left earlier is not looked at.
SELECT doc_id FROM (
    SELECT doc_id FROM nearsim.document
    WHERE collection_id = %(collection_id)s
        AND coalesce(published_at, created_at) >= coalesce(CAST(%(after)s AS timestamptz), '-infinity')
        AND coalesce(published_at, created_at) < %(through)s
) AS expired
WHERE EXISTS (SELECT FROM {signature} AS signature WHERE signature.doc_id = expired.doc_id)
ORDER BY doc_id DESC
