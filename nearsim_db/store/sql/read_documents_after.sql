-- Documents of a collection in doc_id order, from one on. Relies on document_collection_doc.
SELECT doc_id, revision, title, body FROM nearsim.document
WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
ORDER BY doc_id
