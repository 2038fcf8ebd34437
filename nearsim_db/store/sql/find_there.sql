-- Which of some documents are there. Relies on document_pkey.
SELECT doc_id FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s
