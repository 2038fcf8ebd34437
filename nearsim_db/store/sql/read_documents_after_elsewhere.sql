-- As read_documents_after, the first documents only, of a collection that follows a table: the texts that are there, and
-- whether one is not that which the revision is of. Relies on document_collection_doc and on the table's own key, which is
-- asked for each document (the LIMIT forbids to join otherwise).
SELECT followed.doc_id, followed.revision, followed.title,
    CASE WHEN followed.body_digest IS NULL THEN followed.body ELSE there.body END, CAST(NULL AS real[]),
    followed.body_digest <> CAST(md5(coalesce(there.body, '')) AS uuid)
FROM (
    SELECT doc_id, revision, title, body, body_digest, external_id FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
        AND coalesce(published_at, created_at)
            >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
    ORDER BY doc_id LIMIT %(amount)s
) AS followed
LEFT JOIN LATERAL (
    SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1
) AS there ON followed.body_digest IS NOT NULL
ORDER BY followed.doc_id
