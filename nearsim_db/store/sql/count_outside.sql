-- How many documents of a collection are older than an age. Relies on document_age.
SELECT count(*) FROM nearsim.document
WHERE collection_id = %(collection_id)s
    AND coalesce(published_at, created_at) < now() - make_interval(secs => CAST(%(age)s AS double precision))
