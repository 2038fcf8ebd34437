-- Some documents as people read them, wherever body_of finds their texts: up to so many characters of the text, its length, and
-- whether it is not the one that was signed. Relies on document_pkey and on the primary key of the signatures.
SELECT document.doc_id, document.external_id, document.title, left(text.body, %(characters)s), length(text.body),
    document.source, to_char(document.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
    document.revision <> signature.revision
        OR coalesce(document.body_digest <> CAST(md5(coalesce(text.body, '')) AS uuid), false)
FROM nearsim.document
JOIN {signature} AS signature USING (doc_id)
CROSS JOIN LATERAL (SELECT nearsim.body_of(document.doc_id) OFFSET 0) AS text (body)
WHERE document.doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
