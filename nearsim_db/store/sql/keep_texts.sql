-- Of a slice of the documents of a collection the texts come here from the table that it followed; documents go whose rows
-- are gone: the last document of the slice. Relies on document_collection_doc and on the table's key.
WITH followed AS MATERIALIZED (
    SELECT doc_id, external_id FROM nearsim.document WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
    ORDER BY doc_id LIMIT %(amount)s
), kept AS (
    UPDATE nearsim.document SET body = there.body, body_digest = NULL, body_length = NULL
    FROM followed
    CROSS JOIN LATERAL (
        SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1
    ) AS there
    WHERE document.doc_id = followed.doc_id AND document.body_digest IS NOT NULL
), gone AS (
    DELETE FROM nearsim.document USING followed
    WHERE document.doc_id = followed.doc_id AND document.body_digest IS NOT NULL AND NOT EXISTS (
        SELECT FROM {relation} AS source WHERE source.{id} = {key} OFFSET 0)
)
SELECT max(doc_id) FROM followed
