-- Documents of a collection go by their external ids. Relies on document_external_id_key.
DELETE FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = ANY(CAST(%(external_ids)s AS text[]))
RETURNING external_id, doc_id
