-- A random sample of a collection's documents, the same for the same seed: those whose hashed doc_id comes first. Relies on
-- document_collection_doc, of which it reads all entries of the collection.
SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s
ORDER BY hashint8extended(doc_id, CAST(%(seed)s AS bigint)), doc_id LIMIT %(size)s
