-- name: rows_of_ids
-- Part of write_followed: the rows of some ids, which are asked for one by one (the LIMIT forbids to join otherwise). Relies
-- on the table's key. Two ids may be two ways of writing one.
SELECT DISTINCT ON (found.external_id) found.*, CAST(0 AS bigint) AS place
FROM unnest(CAST(%(ids)s AS text[])) AS followed (external_id)
CROSS JOIN LATERAL (SELECT {fields} FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1) AS found
ORDER BY found.external_id

-- name: delete_unfound
-- Documents go that were noted and have no row in the table that their collection follows. Relies on
-- document_external_id_key and on the table's key, which is asked one by one (the OFFSET forbids to join).
DELETE FROM nearsim.document AS followed
WHERE followed.collection_id = %(collection_id)s AND followed.external_id = ANY(CAST(%(ids)s AS text[]))
    AND NOT EXISTS (
        SELECT FROM {relation} AS source
        WHERE source.{id} = {key} AND CAST(source.{id} AS text) COLLATE "C" = followed.external_id OFFSET 0)

-- name: find_slice
-- The id with which a slice of a table begins, after so many rows from an id on, or from the first. Relies on its key.
SELECT CAST(source.{id} AS text) FROM {relation} AS source WHERE {from_here}
ORDER BY source.{id} LIMIT 1 OFFSET %(amount)s

-- name: rows_of_slice
-- Part of write_followed: so many rows of a table from an id on, in the order of their ids. Relies on its key.
SELECT {fields}, row_number() OVER (ORDER BY source.{id}) AS place
FROM {relation} AS source WHERE source.{id} >= CAST(%(start)s AS {id_type})
ORDER BY source.{id} LIMIT %(amount)s

-- name: write_followed
-- Make the documents of a collection what rows of the table are that it follows, where they differ: how many were new, and
-- how many were changed. Relies on document_external_id_key.
WITH there AS MATERIALIZED (
    {rows}
), differing AS (
    SELECT there.* FROM there
    LEFT JOIN nearsim.document AS stored
        ON stored.collection_id = %(collection_id)s AND stored.external_id = there.external_id
    WHERE octet_length(there.external_id) BETWEEN 1 AND 1024
        AND (stored.doc_id IS NULL OR stored.body IS NOT NULL
            OR (stored.title, stored.source, stored.url, stored.published_at, stored.body_digest)
            IS DISTINCT FROM (there.title, there.source, there.url, there.published_at, there.body_digest))
), written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, source, url, published_at, body_digest, body_length)
    SELECT %(collection_id)s, external_id, title, source, url, published_at, body_digest, body_length
    FROM differing ORDER BY place
    ON CONFLICT (collection_id, external_id) DO UPDATE SET
        title = excluded.title, source = excluded.source, url = excluded.url, published_at = excluded.published_at,
        body = NULL, body_digest = excluded.body_digest, body_length = excluded.body_length
    RETURNING xmax = 0 AS is_new
)
SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new) FROM written

-- name: delete_gone
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

-- name: count_unusable
-- Rows of a table that cannot be followed, as their id is NULL, empty or too long. Reads it from end to end, without texts.
SELECT count(*) FROM {relation} AS source
WHERE source.{id} IS NULL OR octet_length(CAST(source.{id} AS text)) NOT BETWEEN 1 AND 1024

-- name: keep_texts
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

-- name: read_body_elsewhere
-- The text of a document that is in the table that its collection follows. Relies on document_pkey and on the table's key.
SELECT source.{text} FROM nearsim.document AS followed JOIN {relation} AS source ON source.{id} = {key}
WHERE followed.doc_id = %(doc_id)s

-- name: find_still_there
-- Which of some ids have a row in the table that the collection follows. Relies on its key.
SELECT followed.external_id FROM unnest(CAST(%(ids)s AS text[])) AS followed (external_id)
WHERE EXISTS (SELECT FROM {relation} AS source WHERE source.{id} = {key} OFFSET 0)

-- name: read_documents_elsewhere
-- As read_documents, of a collection that follows a table: the texts that are there, and whether one is not that which the
-- revision is of. Document and text are of one snapshot. Relies on document_pkey and on the table's own key, which is asked
-- for each document (the LIMIT forbids to join otherwise).
SELECT followed.doc_id, followed.revision, followed.title,
    CASE WHEN followed.body_digest IS NULL THEN followed.body ELSE there.body END, CAST(NULL AS real[]),
    followed.body_digest <> CAST(md5(coalesce(there.body, '')) AS uuid)
FROM nearsim.document AS followed
LEFT JOIN LATERAL (
    SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1
) AS there ON followed.body_digest IS NOT NULL
WHERE followed.doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND followed.collection_id = %(collection_id)s
    AND coalesce(followed.published_at, followed.created_at)
        >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
ORDER BY followed.doc_id

-- name: read_documents_after_elsewhere
-- As read_documents_after, the first documents only, of a collection that follows a table: the texts that are there, and
-- whether one is not that which the revision is of. Relies on document_collection_doc and on the table's own key, which is
-- asked for each document (the LIMIT forbids to join otherwise).
SELECT followed.doc_id, followed.revision, followed.title,
    CASE WHEN followed.body_digest IS NULL THEN followed.body ELSE there.body END, CAST(NULL AS real[]),
    followed.body_digest <> CAST(md5(coalesce(there.body, '')) AS uuid)
FROM (
    SELECT doc_id, revision, title, body, body_digest, external_id FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
        AND coalesce(published_at, created_at)
            >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
    ORDER BY doc_id LIMIT %(amount)s
) AS followed
LEFT JOIN LATERAL (
    SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1
) AS there ON followed.body_digest IS NOT NULL
ORDER BY followed.doc_id
