-- A random sample of the documents of a collection and of the signatures whose documents are gone: those whose hashed
-- doc_id comes first. Relies on document_collection_doc and on the leaf's key, of which it reads all entries.
SELECT doc_id FROM (
    SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s
    UNION
    SELECT doc_id FROM {signature}
) AS either
ORDER BY hashint8extended(doc_id, CAST(%(seed)s AS bigint)), doc_id LIMIT %(amount)s
