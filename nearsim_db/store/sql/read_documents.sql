-- Some documents by doc_id. Relies on document_pkey.
SELECT doc_id, revision, title, body FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) ORDER BY doc_id
