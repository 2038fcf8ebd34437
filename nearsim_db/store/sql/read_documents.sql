-- Some documents of a collection by doc_id, and whether the text of each is elsewhere; with an age, those that are no older.
-- Relies on document_pkey.
SELECT doc_id, revision, title, body, body_digest IS NOT NULL FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s
    AND coalesce(published_at, created_at)
        >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
ORDER BY doc_id
