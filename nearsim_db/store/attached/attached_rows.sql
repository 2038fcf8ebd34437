-- name: select_rows_by_id
-- Part of upsert_source_documents: the rows with these ids, which are probed one by one (LIMIT prevents a join of all rows).
-- Two ids may be different spellings of the same key. Relies on the key of the attached table.
SELECT DISTINCT ON (source_row.external_id) source_row.*, CAST(0 AS bigint) AS place
FROM unnest(CAST(%(ids)s AS text[])) AS attached (external_id)
CROSS JOIN LATERAL (SELECT {fields}, {value} AS value FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1) AS source_row
ORDER BY source_row.external_id

-- name: delete_orphans
-- Delete changed documents that have no row in the attached table, or whose row has another value than the collection.
-- Relies on document_external_id_key, and on the key of the attached table, which is probed once for each document (OFFSET
-- prevents a join of all rows).
DELETE FROM nearsim.document AS attached
USING unnest(CAST(%(ids)s AS text[]), CAST(%(former_values)s AS text[])) AS changed (external_id, value)
    JOIN unnest(CAST(%(collection_ids)s AS integer[]), CAST(%(values)s AS text[])) AS part (collection_id, value) USING (value)
WHERE attached.collection_id = part.collection_id AND attached.external_id = changed.external_id
    AND NOT EXISTS (
        SELECT FROM {relation} AS source
        WHERE source.{id} = {key} AND CAST(source.{id} AS text) COLLATE "C" = attached.external_id
            AND {value} = part.value OFFSET 0)

-- name: find_slice
-- The first id of a table's next slice: the id that is `amount` rows after a start id, or after the first id of the table.
-- Relies on the key of the attached table.
SELECT CAST(source.{id} AS text) FROM {relation} AS source WHERE {from_here}
ORDER BY source.{id} LIMIT 1 OFFSET %(amount)s

-- name: select_rows_in_slice
-- Part of upsert_source_documents: a slice of the attached table, in the order of its ids. Relies on the key of that table.
SELECT {fields}, {value} AS value, row_number() OVER (ORDER BY source.{id}) AS place
FROM {relation} AS source WHERE {from_here}
ORDER BY source.{id} LIMIT %(amount)s

-- name: upsert_source_documents
-- Insert documents from rows of the attached table, and update documents that differ; the value of a row determines its
-- collection. Returns the number of inserted documents, the number of updated documents, and the number of rows. The
-- documents of a collection are written one after the other. Relies on document_external_id_key.
WITH source_row AS MATERIALIZED (
    {rows}
), differing AS (
    SELECT part.collection_id, source_row.* FROM source_row
    JOIN unnest(CAST(%(collection_ids)s AS integer[]), CAST(%(values)s AS text[])) AS part (collection_id, value)
        ON part.value = source_row.value
    LEFT JOIN nearsim.document AS stored
        ON stored.collection_id = part.collection_id AND stored.external_id = source_row.external_id
    WHERE octet_length(source_row.external_id) BETWEEN 1 AND 1024
        AND (stored.doc_id IS NULL OR stored.body IS NOT NULL
            OR (stored.title, stored.source, stored.url, stored.published_at, stored.body_digest)
            IS DISTINCT FROM (source_row.title, source_row.source, source_row.url, source_row.published_at, source_row.body_digest))
), written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, source, url, published_at, body_digest, body_length)
    SELECT collection_id, external_id, title, source, url, published_at, body_digest, body_length
    FROM differing ORDER BY collection_id, place
    ON CONFLICT (collection_id, external_id) DO UPDATE SET
        title = excluded.title, source = excluded.source, url = excluded.url, published_at = excluded.published_at,
        body = NULL, body_digest = excluded.body_digest, body_length = excluded.body_length
    RETURNING xmax = 0 AS is_new
)
SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new), (SELECT count(*) FROM source_row) FROM written

-- name: delete_orphans_in_slice
-- Delete the documents of a slice that have no row in the attached table, or whose row has another value. Returns the
-- collection and the doc_id of the slice's last document, the number of documents in the slice, and the number of deleted
-- documents. Relies on document_collection_doc, and on the key of the attached table, which is probed once for each document
-- (OFFSET prevents a join of all rows).
WITH part AS (
    SELECT * FROM unnest(CAST(%(collection_ids)s AS integer[]), CAST(%(values)s AS text[])) AS part (collection_id, value)
    WHERE collection_id >= %(collection_id)s ORDER BY collection_id
), attached AS MATERIALIZED (
    SELECT part.collection_id, part.value, stored.doc_id, stored.external_id
    FROM part CROSS JOIN LATERAL (
        SELECT doc_id, external_id FROM nearsim.document
        WHERE document.collection_id = part.collection_id
            AND doc_id > CASE part.collection_id WHEN %(collection_id)s THEN %(after)s ELSE 0 END
        ORDER BY doc_id LIMIT %(amount)s) AS stored
    ORDER BY part.collection_id, stored.doc_id LIMIT %(amount)s
), deleted AS (
    DELETE FROM nearsim.document USING attached
    WHERE document.doc_id = attached.doc_id AND NOT EXISTS (
        SELECT FROM {relation} AS source
        WHERE source.{id} = {key} AND CAST(source.{id} AS text) COLLATE "C" = attached.external_id
            AND {value} = attached.value OFFSET 0)
    RETURNING document.doc_id
)
SELECT (array_agg(collection_id ORDER BY collection_id DESC, doc_id DESC))[1],
    (array_agg(doc_id ORDER BY collection_id DESC, doc_id DESC))[1], count(*), (SELECT count(*) FROM deleted)
FROM attached

-- name: count_unusable_rows
-- Number of rows that cannot become documents because their id is NULL, empty or too long, for each value of the collection
-- field. Reads the whole attached table, but no texts.
SELECT {value} AS value, count(*) FROM {relation} AS source
WHERE source.{id} IS NULL OR octet_length(CAST(source.{id} AS text)) NOT BETWEEN 1 AND 1024
GROUP BY 1

-- name: copy_texts
-- Copy the texts of a slice of a collection's documents from the attached table, and delete documents that have no row
-- there. Returns the last doc_id of the slice, and the number of its documents. Relies on document_collection_doc and on the
-- key of the attached table.
WITH attached AS MATERIALIZED (
    SELECT doc_id, external_id FROM nearsim.document WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
    ORDER BY doc_id LIMIT %(amount)s
), kept AS (
    UPDATE nearsim.document SET body = source_row.body, body_digest = NULL, body_length = NULL
    FROM attached
    CROSS JOIN LATERAL (
        SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1
    ) AS source_row
    WHERE document.doc_id = attached.doc_id AND document.body_digest IS NOT NULL
), deleted AS (
    DELETE FROM nearsim.document USING attached
    WHERE document.doc_id = attached.doc_id AND document.body_digest IS NOT NULL AND NOT EXISTS (
        SELECT FROM {relation} AS source WHERE source.{id} = {key} OFFSET 0)
)
SELECT max(doc_id), count(*) FROM attached

-- name: read_source_bodies
-- Texts of documents from the attached table. Relies on document_pkey, and on the key of the attached table, which is probed
-- once for each document (LIMIT prevents a join of all rows).
SELECT attached.doc_id, source_row.body FROM nearsim.document AS attached
CROSS JOIN LATERAL (SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1) AS source_row
WHERE attached.doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: find_existing_ids
-- Those of the ids that have a row in the attached table. Relies on the key of that table.
SELECT attached.external_id FROM unnest(CAST(%(ids)s AS text[])) AS attached (external_id)
WHERE EXISTS (SELECT FROM {relation} AS source WHERE source.{id} = {key} OFFSET 0)

-- name: find_values
-- The distinct values, as text, that the rows with these ids have in a field, leaving out values that cannot name a
-- collection. Relies on the key of the attached table, which is probed once for each id (LIMIT prevents a join of all rows).
SELECT DISTINCT source_row.value
FROM unnest(CAST(%(ids)s AS text[])) AS attached (external_id)
CROSS JOIN LATERAL (
    SELECT CAST(source.{field} AS text) COLLATE "C" AS value FROM {whole} AS source WHERE source.{id} = {key} LIMIT 1
) AS source_row
WHERE octet_length(source_row.value) BETWEEN 1 AND 1024

-- name: find_new_values
-- The values of a field, as text, that have no collection yet, leaving out values that cannot name a collection. Reads the
-- whole attached table, but no texts.
SELECT value FROM (SELECT DISTINCT CAST(source.{field} AS text) COLLATE "C" AS value FROM {whole} AS source) AS field
WHERE octet_length(value) BETWEEN 1 AND 1024 AND NOT EXISTS (
    SELECT FROM nearsim_index.attachment WHERE parent_id = %(collection_id)s AND collection_value = value)
ORDER BY value

-- name: read_source_documents
-- The same as read_documents for an attached table: reads texts from that table, and compares each text with the digest of
-- the document's revision. Document and text come from one snapshot. Relies on document_pkey, and on the key of the attached
-- table, which is probed once for each document (LIMIT prevents a join of all rows).
SELECT {source_document}
FROM nearsim.document AS attached
{with_source_row}
WHERE attached.doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND attached.collection_id IS NOT DISTINCT FROM %(collection_id)s
ORDER BY attached.doc_id

-- name: read_unsigned_source_documents
-- The same as read_unsigned_documents for the next documents of an attached table: reads texts from that table, and compares
-- each text with the digest of the document's revision. Relies on document_collection_doc, and on the key of the attached
-- table, which is probed once for each document (LIMIT prevents a join of all rows).
SELECT {source_document}
FROM (
    SELECT doc_id, revision, title, body, body_digest, external_id FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND doc_id > %(after)s AND doc_id <= %(through)s
        AND {is_within_age}
        AND NOT EXISTS (SELECT FROM {signature} AS signature WHERE signature.doc_id = document.doc_id)
    ORDER BY doc_id LIMIT %(amount)s
) AS attached
{with_source_row}
ORDER BY attached.doc_id
