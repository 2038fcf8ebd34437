-- The next documents of a collection, or signatures of documents that are gone, from one on. Relies on
-- document_collection_doc and on the leaf's key.
SELECT doc_id FROM (
    (SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
        ORDER BY doc_id LIMIT %(amount)s)
    UNION
    (SELECT doc_id FROM {signature} WHERE doc_id > %(after)s ORDER BY doc_id LIMIT %(amount)s)
) AS either
ORDER BY doc_id LIMIT %(amount)s
