-- Which of some documents are inside the window and signed as they are now. Relies on both keys.
SELECT document.doc_id FROM nearsim.document AS document JOIN {signature} AS signature USING (doc_id)
WHERE document.doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND document.collection_id = %(collection_id)s
    AND signature.revision = document.revision
    AND coalesce(document.published_at, document.created_at)
        >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
