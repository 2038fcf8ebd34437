-- Of a slice of the documents of a collection those go that have no row in the table that it follows: the last document of
-- the slice, and how many went. Relies on document_collection_doc and on the table's key, which is asked one by one (the
-- OFFSET forbids to join).
WITH followed AS MATERIALIZED (
    SELECT doc_id, external_id FROM nearsim.document WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
    ORDER BY doc_id LIMIT %(amount)s
), gone AS (
    DELETE FROM nearsim.document USING followed
    WHERE document.doc_id = followed.doc_id AND NOT EXISTS (
        SELECT FROM {relation} AS source
        WHERE source.{id} = {key} AND CAST(source.{id} AS text) COLLATE "C" = followed.external_id OFFSET 0)
    RETURNING document.doc_id
)
SELECT max(doc_id), (SELECT count(*) FROM gone) FROM followed
