-- As read_documents, of a collection that follows a table: the texts that are there, and whether one is not that which the
-- revision is of. Document and text are of one snapshot. Relies on document_pkey and on the table's own key, which is asked
-- for each document (the LIMIT forbids to join otherwise).
SELECT followed.doc_id, followed.revision, followed.title,
    CASE WHEN followed.body_digest IS NULL THEN followed.body ELSE there.body END, CAST(NULL AS real[]),
    followed.body_digest <> CAST(md5(coalesce(there.body, '')) AS uuid)
FROM nearsim.document AS followed
LEFT JOIN LATERAL (
    SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1
) AS there ON followed.body_digest IS NOT NULL
WHERE followed.doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND followed.collection_id = %(collection_id)s
    AND coalesce(followed.published_at, followed.created_at)
        >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
ORDER BY followed.doc_id
