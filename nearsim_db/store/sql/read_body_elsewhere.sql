-- The text of a document that is in the table that its collection follows. Relies on document_pkey and on the table's key.
SELECT source.{text} FROM nearsim.document AS followed JOIN {relation} AS source ON source.{id} = {key}
WHERE followed.doc_id = %(doc_id)s
