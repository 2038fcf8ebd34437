-- name: create_incoming
-- Temporary tables of a session. `incoming` has the current batch, stored like documents. `seen` has the ids that occurred
-- so far, with their places; for an id that occurred again, also the earlier place.
CREATE TEMP TABLE IF NOT EXISTS incoming (
    line bigint, external_id text COLLATE "C", title text, body text, source text, url text,
    published_at timestamptz, attributes jsonb, vector real[])
    WITH (toast_tuple_target = 4080) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS seen (external_id text COLLATE "C" PRIMARY KEY, place bigint, earlier bigint)

-- name: compare_documents
-- Returns what upsert_documents would return, without writing; an id that occurred in an earlier file counts as updated.
-- Relies on document_external_id_key.
SELECT count(*) FILTER (WHERE document.doc_id IS NULL AND NOT recurs),
    count(*) FILTER (WHERE document.doc_id IS NOT NULL AND differs OR recurs),
    count(*) FILTER (WHERE document.doc_id IS NOT NULL AND NOT differs AND NOT recurs),
    coalesce(array_agg(incoming.external_id) FILTER (WHERE recurs), CAST(ARRAY[] AS text[]))
FROM incoming
LEFT JOIN nearsim.document
    ON document.collection_id = %(collection_id)s AND document.external_id = incoming.external_id
CROSS JOIN LATERAL (SELECT
    (document.title, document.body, document.source, document.url, document.published_at, document.attributes)
    IS DISTINCT FROM
    (incoming.title, incoming.body, incoming.source, incoming.url, incoming.published_at, incoming.attributes)
    OR incoming.vector IS NOT NULL AND document.vector IS DISTINCT FROM incoming.vector
    AS differs, incoming.external_id = ANY(CAST(%(recurring)s AS text[])) AS recurs) AS comparison
WHERE incoming.external_id <> ALL (CAST(%(superseded)s AS text[]))

-- name: upsert_documents
-- Upsert a batch by external_id. Documents get their doc_ids in file order; an update without a vector keeps the stored
-- vector. Returns the numbers of rows inserted, updated and unchanged, not counting the ids in `superseded` (ids that
-- occurred earlier in the same file), and those ids in `recurring` (ids that occurred in other files) whose rows were
-- updated. Relies on document_external_id_key.
WITH written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, body, source, url, published_at, attributes, vector)
    SELECT %(collection_id)s, external_id, title, body, source, url, published_at, attributes, vector
    FROM incoming ORDER BY line
    {on_conflict_update}
    RETURNING external_id, xmax = 0 AS is_new
), fresh AS (
    SELECT external_id FROM incoming WHERE external_id <> ALL (CAST(%(superseded)s AS text[]))
)
SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new), count(*) FILTER (WHERE is_new IS NULL),
    coalesce(array_agg(external_id) FILTER (WHERE NOT is_new AND external_id = ANY(CAST(%(recurring)s AS text[]))),
        CAST(ARRAY[] AS text[]))
FROM fresh LEFT JOIN written USING (external_id)

-- name: record_loaded_ids
-- Add the ids of documents that were loaded as new to `seen`. Relies on document_pkey.
INSERT INTO seen (external_id, place)
SELECT document.external_id, loaded.place
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(places)s AS bigint[])) AS loaded (doc_id, place)
JOIN nearsim.document USING (doc_id)
ON CONFLICT (external_id) DO UPDATE SET place = excluded.place

-- name: record_seen_ids
-- Add a batch's ids and places to `seen`, and return the ids that also occurred at an earlier place. Relies on the key of
-- `seen`.
WITH recorded AS (
    INSERT INTO seen (external_id, place)
    SELECT * FROM unnest(CAST(%(external_ids)s AS text[]), CAST(%(places)s AS bigint[]))
    ON CONFLICT (external_id) DO UPDATE SET earlier = seen.place, place = excluded.place
    RETURNING external_id, earlier, place
)
SELECT external_id, earlier, place FROM recorded WHERE earlier IS NOT NULL ORDER BY earlier

-- name: has_any_document
-- Whether any of these documents exists in a collection. Relies on document_external_id_key.
SELECT EXISTS (
    SELECT FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND external_id = ANY(CAST(%(external_ids)s AS text[])))

-- name: reserve_numbers
-- New doc_ids and new revisions, both ascending; each number is packed into eight bytes.
SELECT string_agg(int8send(nextval((SELECT CAST(pg_get_serial_sequence('nearsim.document', 'doc_id') AS regclass)))), ''),
    string_agg(int8send(nextval('nearsim.document_revision')), '')
FROM generate_series(1, %(amount)s)

-- name: copy_documents
-- Load new documents, whose doc_ids and revisions were reserved before.
COPY nearsim.document
    (doc_id, revision, collection_id, external_id, title, body, source, url, published_at, attributes, vector)
FROM STDIN (FORMAT binary)

-- name: upsert_document
-- Upsert a document by external_id. Returns its doc_id, and whether it is new (true), updated (false) or unchanged (NULL).
-- Returns no row if another session wrote the same document concurrently; a retry sees that document. An update without a
-- vector keeps the stored vector. Relies on document_external_id_key.
WITH written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, body, source, url, published_at, attributes, vector)
    VALUES (%(collection_id)s, %(external_id)s, %(title)s, %(body)s, %(source)s, %(url)s, %(published_at)s,
        CAST(%(attributes)s AS jsonb), CAST(%(vector)s AS real[]))
    {on_conflict_update}
    RETURNING doc_id, xmax = 0 AS is_new
)
SELECT doc_id, is_new FROM written
UNION ALL
SELECT doc_id, NULL FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s AND NOT EXISTS (SELECT FROM written)

-- name: has_same_document
-- Whether a document with the same id and the same values is stored. If no vector is passed, any stored vector matches.
-- Relies on document_external_id_key.
SELECT EXISTS (
    SELECT FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s
        AND (title, body, source, url, published_at, attributes) IS NOT DISTINCT FROM (
            CAST(%(title)s AS text), CAST(%(body)s AS text), CAST(%(source)s AS text), CAST(%(url)s AS text),
            CAST(%(published_at)s AS timestamptz), CAST(%(attributes)s AS jsonb))
        AND vector IS NOT DISTINCT FROM coalesce(CAST(%(vector)s AS real[]), vector))

-- name: copy_incoming
-- Load a batch into `incoming`.
COPY incoming (line, external_id, title, body, source, url, published_at, attributes, vector)
FROM STDIN (FORMAT binary)

-- name: read_unsigned_documents
-- Documents of a collection without a signature, in a range of doc_ids, in order: their vectors or their texts (columns that
-- are not requested are not detoasted), and whether the text is in an attached table. Relies on the leaf's key, and on
-- document_collection_doc or, with by_age, on document_age. The condition of by_age is always true, but it makes PostgreSQL
-- use document_age: between two bounds of the age it expects few documents, above a single bound a third of all.
SELECT doc_id, revision, CASE WHEN NOT requested.vectors THEN title END, CASE WHEN NOT requested.vectors THEN body END,
    CASE WHEN requested.vectors THEN vector END, NOT requested.vectors AND body_digest IS NOT NULL
FROM nearsim.document CROSS JOIN (SELECT CAST(%(vectors)s AS boolean) AS vectors) AS requested
WHERE collection_id = %(collection_id)s AND doc_id > %(after)s AND doc_id <= %(through)s
    AND {is_within_age}
    AND (NOT CAST(%(by_age)s AS boolean) OR coalesce(published_at, created_at) <= 'infinity')
    AND NOT EXISTS (SELECT FROM {signature} AS signature WHERE signature.doc_id = document.doc_id)
ORDER BY doc_id

-- name: read_documents
-- Documents of a collection by doc_id: their vectors or their texts (columns that are not requested are not detoasted), and
-- whether the text is in an attached table. Relies on document_pkey. No index supports IS NOT DISTINCT FROM, so the planner
-- does not use the indexes on collection_id; through these it would read all documents of a collection that the statistics
-- do not know.
SELECT doc_id, revision, CASE WHEN NOT requested.vectors THEN title END, CASE WHEN NOT requested.vectors THEN body END,
    CASE WHEN requested.vectors THEN vector END, NOT requested.vectors AND body_digest IS NOT NULL
FROM nearsim.document CROSS JOIN (SELECT CAST(%(vectors)s AS boolean) AS vectors) AS requested
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id IS NOT DISTINCT FROM %(collection_id)s
ORDER BY doc_id

-- name: list_changed_documents
-- Documents that changed since they were read: they were deleted or written again, or have expired. Relies on document_pkey.
SELECT before.doc_id
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(revisions)s AS bigint[])) AS before (doc_id, revision)
LEFT JOIN nearsim.document ON document.doc_id = before.doc_id
    AND document.collection_id IS NOT DISTINCT FROM %(collection_id)s
    AND document.revision = before.revision AND {is_within_age}
WHERE document.doc_id IS NULL
ORDER BY before.doc_id

-- name: has_expired
-- Whether a document has expired in a generation. Relies on document_pkey.
SELECT NOT {is_within_age} FROM nearsim.document WHERE doc_id = %(doc_id)s

-- name: find_existing_documents
-- Those of the doc_ids whose documents exist in a collection. Relies on document_pkey, as read_documents does.
SELECT doc_id FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id IS NOT DISTINCT FROM %(collection_id)s

-- name: count_past_retention
-- Number of a collection's documents that have expired in a generation. Relies on document_age.
SELECT count(*) FROM nearsim.document WHERE collection_id = %(collection_id)s AND NOT {is_within_age}

-- name: sample_documents
-- A random sample of a collection's documents, which the seed makes repeatable: the doc_ids with the smallest hashes. Reads
-- all entries of the collection in document_collection_doc.
SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s
ORDER BY hashint8extended(doc_id, CAST(%(seed)s AS bigint)), doc_id LIMIT %(size)s

-- name: read_whole_documents
-- All columns of documents, by their external ids. Relies on document_external_id_key.
SELECT doc_id, collection_id, external_id, title, body, vector, source, url, published_at, attributes, revision,
    created_at, updated_at, body_digest IS NOT NULL AS is_attached
FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = ANY(CAST(%(external_ids)s AS text[]))

-- name: has_documents
-- Whether a collection has documents. Relies on document_collection_doc.
SELECT EXISTS (SELECT FROM nearsim.document WHERE collection_id = %(collection_id)s)

-- name: lacks_sources
-- Whether a collection has documents, or documents without a source are being added (`adds`), but it has none with a source.
-- Relies on document_collection_doc.
SELECT (%(adds)s OR EXISTS (SELECT FROM nearsim.document WHERE collection_id = %(collection_id)s))
    AND NOT EXISTS (SELECT FROM nearsim.document WHERE collection_id = %(collection_id)s AND source ~ '\S')

-- name: delete_documents
-- Delete documents by external id, which are looked up one by one. Returns the ids of the deleted documents. Relies on
-- document_external_id_key and document_pkey.
DELETE FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = ANY(CAST(%(external_ids)s AS text[]))
    AND doc_id = ANY (ARRAY(
        SELECT existing.doc_id FROM unnest(CAST(%(external_ids)s AS text[])) AS query (external_id)
        CROSS JOIN LATERAL (
            SELECT doc_id FROM nearsim.document
            WHERE collection_id = %(collection_id)s AND external_id = query.external_id LIMIT 1
        ) AS existing))
RETURNING external_id, doc_id

-- name: read_values
-- The values of documents in these fields, in the order of the fields (null for a missing value), and their dates, limited
-- to years that Python can represent. Relies on document_pkey.
SELECT doc_id,
    coalesce((SELECT jsonb_agg(nearsim.value_of(given.name, source, attributes) ORDER BY given.place)
        FROM unnest(CAST(%(fields)s AS text[])) WITH ORDINALITY AS given (name, place)), '[]'),
    CASE WHEN published_at IS NOT NULL THEN
        least(greatest(published_at, TIMESTAMPTZ '0002-01-01'), TIMESTAMPTZ '9998-01-01') END
FROM nearsim.document WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: lacks_rank
-- Whether a collection has documents, but none with a value by which a keep rule could prefer it to others. Relies on
-- document_collection_doc.
SELECT EXISTS (SELECT FROM nearsim.document WHERE collection_id = %(collection_id)s)
    AND NOT EXISTS (SELECT FROM nearsim.document
        WHERE collection_id = %(collection_id)s AND nearsim.keep_keys(ARRAY[CAST(%(rule)s AS text)], NULL, title, body,
            body_length, source, url, published_at, created_at, attributes) < ARRAY[CAST('Infinity' AS double precision)])

-- name: lacks_values
-- Whether a collection has documents, but none with a value in a field that the JSON path `kind` selects. Relies on
-- document_collection_doc.
SELECT EXISTS (SELECT FROM nearsim.document WHERE collection_id = %(collection_id)s)
    AND NOT EXISTS (SELECT FROM nearsim.document
        WHERE collection_id = %(collection_id)s AND jsonb_path_query_first(
            nearsim.value_of(%(field)s, source, attributes), CAST(%(kind)s AS jsonpath), silent => true) IS NOT NULL)
