-- Documents of a collection in doc_id order, from one on, their vectors or else their texts (what is not asked for is not
-- detoasted), and whether a text that is asked for is elsewhere; with an age, those that are no older. Relies on document_collection_doc, or on document_age where the window is small.
SELECT doc_id, revision, CASE WHEN NOT asked.vectors THEN title END, CASE WHEN NOT asked.vectors THEN body END,
    CASE WHEN asked.vectors THEN vector END, NOT asked.vectors AND body_digest IS NOT NULL
FROM nearsim.document CROSS JOIN (SELECT CAST(%(vectors)s AS boolean) AS vectors) AS asked
WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
    AND coalesce(published_at, created_at)
        >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
ORDER BY doc_id
