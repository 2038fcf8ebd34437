-- Some documents of a collection by doc_id. Relies on document_pkey.
SELECT doc_id, revision, title, body FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s ORDER BY doc_id
