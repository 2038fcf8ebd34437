-- Some documents were to be read whose texts are elsewhere, and are not what they were known to be: their digest is made one
-- that no text has, so that they make a new revision when they are looked at again, which is noted. Relies on document_pkey.
WITH doubted AS (
    UPDATE nearsim.document SET body_digest = '00000000-0000-0000-0000-000000000000'
    WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s
        AND body_digest <> '00000000-0000-0000-0000-000000000000'
        AND coalesce(published_at, created_at)
            >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
    RETURNING collection_id, external_id
)
INSERT INTO nearsim.change (collection_id, external_id) SELECT collection_id, external_id FROM doubted
