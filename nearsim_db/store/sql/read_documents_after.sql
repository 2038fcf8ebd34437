-- Documents of a collection in doc_id order, from one on, and whether the text of each is elsewhere; with an age, those that
-- are no older. Relies on document_collection_doc, or on document_age where the window is small.
SELECT doc_id, revision, title, body, body_digest IS NOT NULL FROM nearsim.document
WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
    AND coalesce(published_at, created_at)
        >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
ORDER BY doc_id
