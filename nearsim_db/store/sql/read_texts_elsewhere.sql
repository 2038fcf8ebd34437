-- As read_texts, of a collection that follows a table which the caller may read. Relies on document_pkey and on the table's own
-- key, which is asked for each document (the LIMIT forbids to join otherwise).
SELECT followed.doc_id, followed.external_id, followed.title, left(text.body, %(characters)s), length(text.body),
    followed.source, to_char(followed.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
    followed.revision <> signature.revision
        OR coalesce(followed.body_digest <> CAST(md5(coalesce(text.body, '')) AS uuid), false)
FROM nearsim.document AS followed
JOIN {signature} AS signature USING (doc_id)
LEFT JOIN LATERAL (
    SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1
) AS there ON followed.body_digest IS NOT NULL
CROSS JOIN LATERAL (
    SELECT CASE WHEN followed.body_digest IS NULL THEN followed.body ELSE there.body END
) AS text (body)
WHERE followed.doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
