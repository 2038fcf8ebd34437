-- name: create_incoming
-- What one session is about to write: a batch of documents, and the ids it has met in the file so far.
CREATE TEMP TABLE IF NOT EXISTS incoming (
    line bigint, external_id text COLLATE "C", title text, body text, source text, url text,
    published_at timestamptz, attributes jsonb, vector real[]) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS met (external_id text COLLATE "C" PRIMARY KEY, line bigint)

-- name: compare_documents
-- What upsert_documents would do, without doing it.
SELECT count(*) FILTER (WHERE document.doc_id IS NULL),
    count(*) FILTER (WHERE document.doc_id IS NOT NULL AND differs),
    count(*) FILTER (WHERE document.doc_id IS NOT NULL AND NOT differs)
FROM incoming
LEFT JOIN nearsim.document
    ON document.collection_id = %(collection_id)s AND document.external_id = incoming.external_id
CROSS JOIN LATERAL (SELECT
    (document.title, document.body, document.source, document.url, document.published_at, document.attributes)
    IS DISTINCT FROM
    (incoming.title, incoming.body, incoming.source, incoming.url, incoming.published_at, incoming.attributes)
    OR incoming.vector IS NOT NULL AND document.vector IS DISTINCT FROM incoming.vector
    AS differs) AS comparison
WHERE NOT EXISTS (SELECT FROM met WHERE met.external_id = incoming.external_id)

-- name: upsert_documents
-- Write a batch by external_id and say how many rows were new, changed and as they were; ids met before in the file
-- are left out of the counts. Documents get their doc_id in the order of the file; those given without a vector keep the
-- one they have. Relies on document_external_id_key.
WITH written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, body, source, url, published_at, attributes, vector)
    SELECT %(collection_id)s, external_id, title, body, source, url, published_at, attributes, vector
    FROM incoming ORDER BY line
    ON CONFLICT (collection_id, external_id) DO UPDATE SET
        title = excluded.title, body = excluded.body, source = excluded.source, url = excluded.url,
        published_at = excluded.published_at, attributes = excluded.attributes,
        vector = coalesce(excluded.vector, document.vector)
    WHERE (document.title, document.body, document.source, document.url, document.published_at,
           document.attributes)
        IS DISTINCT FROM (excluded.title, excluded.body, excluded.source, excluded.url,
           excluded.published_at, excluded.attributes)
        OR excluded.vector IS NOT NULL AND document.vector IS DISTINCT FROM excluded.vector
    RETURNING external_id, xmax = 0 AS is_new
), fresh AS (
    SELECT external_id FROM incoming WHERE NOT EXISTS (SELECT FROM met WHERE met.external_id = incoming.external_id)
)
SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new), count(*) FILTER (WHERE is_new IS NULL)
FROM fresh LEFT JOIN written USING (external_id)

-- name: find_superseded
-- Ids met earlier in the same file: the earlier line is superseded. Relies on the key of met.
SELECT met.external_id, met.line, incoming.line FROM incoming JOIN met USING (external_id) ORDER BY met.line

-- name: remember_met
-- The batch's ids and lines, for the batches after it.
INSERT INTO met (external_id, line) SELECT external_id, line FROM incoming
ON CONFLICT (external_id) DO UPDATE SET line = excluded.line

-- name: upsert_document
-- Write one document by external_id: its doc_id, and whether it is new (null: it was there as it is). No row
-- where somebody else wrote the same meanwhile: asked again, it is seen. Given without a vector it keeps the one it has.
-- Relies on document_external_id_key.
WITH written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, body, source, url, published_at, attributes, vector)
    VALUES (%(collection_id)s, %(external_id)s, %(title)s, %(body)s, %(source)s, %(url)s, %(published_at)s,
        CAST(%(attributes)s AS jsonb), CAST(%(vector)s AS real[]))
    ON CONFLICT (collection_id, external_id) DO UPDATE SET
        title = excluded.title, body = excluded.body, source = excluded.source, url = excluded.url,
        published_at = excluded.published_at, attributes = excluded.attributes,
        vector = coalesce(excluded.vector, document.vector)
    WHERE (document.title, document.body, document.source, document.url, document.published_at,
           document.attributes)
        IS DISTINCT FROM (excluded.title, excluded.body, excluded.source, excluded.url,
           excluded.published_at, excluded.attributes)
        OR excluded.vector IS NOT NULL AND document.vector IS DISTINCT FROM excluded.vector
    RETURNING doc_id, xmax = 0 AS is_new
)
SELECT doc_id, is_new FROM written
UNION ALL
SELECT doc_id, NULL FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s AND NOT EXISTS (SELECT FROM written)

-- name: find_same
-- Whether a document is stored under its external_id exactly as given; given without a vector, whatever it has.
-- Relies on document_external_id_key.
SELECT EXISTS (
    SELECT FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s
        AND (title, body, source, url, published_at, attributes) IS NOT DISTINCT FROM (
            CAST(%(title)s AS text), CAST(%(body)s AS text), CAST(%(source)s AS text), CAST(%(url)s AS text),
            CAST(%(published_at)s AS timestamptz), CAST(%(attributes)s AS jsonb))
        AND vector IS NOT DISTINCT FROM coalesce(CAST(%(vector)s AS real[]), vector))

-- name: copy_incoming
-- A batch on its way in.
COPY incoming (line, external_id, title, body, source, url, published_at, attributes, vector) FROM STDIN

-- name: read_documents_after
-- Documents of a collection in doc_id order, from one on, their vectors or else their texts (what is not asked for is not
-- detoasted), and whether a text that is asked for is elsewhere; with an age, those that are no older. Relies on document_collection_doc, or on document_age where the window is small.
SELECT doc_id, revision, CASE WHEN NOT asked.vectors THEN title END, CASE WHEN NOT asked.vectors THEN body END,
    CASE WHEN asked.vectors THEN vector END, NOT asked.vectors AND body_digest IS NOT NULL
FROM nearsim.document CROSS JOIN (SELECT CAST(%(vectors)s AS boolean) AS vectors) AS asked
WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
    AND coalesce(published_at, created_at)
        >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
ORDER BY doc_id

-- name: read_documents
-- Some documents of a collection by doc_id, their vectors or else their texts (what is not asked for is not detoasted), and
-- whether a text that is asked for is elsewhere; with an age, those that are no older.
-- Relies on document_pkey.
SELECT doc_id, revision, CASE WHEN NOT asked.vectors THEN title END, CASE WHEN NOT asked.vectors THEN body END,
    CASE WHEN asked.vectors THEN vector END, NOT asked.vectors AND body_digest IS NOT NULL
FROM nearsim.document CROSS JOIN (SELECT CAST(%(vectors)s AS boolean) AS vectors) AS asked
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s
    AND coalesce(published_at, created_at)
        >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
ORDER BY doc_id

-- name: read_outside
-- Those of some documents that are older than an age at this moment, and nothing where there is no age. Relies on
-- document_pkey.
SELECT doc_id FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s
    AND coalesce(published_at, created_at)
        < clock_timestamp() - make_interval(secs => CAST(%(age)s AS double precision))
ORDER BY doc_id

-- name: find_there
-- Which of some documents are there. Relies on document_pkey.
SELECT doc_id FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s

-- name: count_outside
-- How many documents of a collection are older than an age. Relies on document_age.
SELECT count(*) FROM nearsim.document
WHERE collection_id = %(collection_id)s
    AND coalesce(published_at, created_at) < now() - make_interval(secs => CAST(%(age)s AS double precision))

-- name: sample_documents
-- A random sample of a collection's documents, the same for the same seed: those whose hashed doc_id comes first. Relies on
-- document_collection_doc, of which it reads all entries of the collection.
SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s
ORDER BY hashint8extended(doc_id, CAST(%(seed)s AS bigint)), doc_id LIMIT %(size)s

-- name: read_unique_origins
-- Where the documents that stay came from, in the order of the input: survivors, and documents in no cluster.
SELECT CAST(document.attributes ->> 'part' AS integer) AS part,
    CAST(document.attributes ->> 'position' AS bigint) AS position
FROM nearsim.document LEFT JOIN {cluster_member} AS member USING (doc_id)
WHERE document.collection_id = %(collection_id)s AND member.is_survivor IS NOT FALSE
ORDER BY part, position
