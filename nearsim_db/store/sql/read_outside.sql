-- Those of some documents that are older than an age at this moment, and nothing where there is no age. Relies on
-- document_pkey.
SELECT doc_id FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s
    AND coalesce(published_at, created_at)
        < clock_timestamp() - make_interval(secs => CAST(%(age)s AS double precision))
ORDER BY doc_id
