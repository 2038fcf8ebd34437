-- name: count_heads
-- Number of heads. Reads the whole table.
SELECT count(*) FROM {signature} AS signature WHERE head_id = doc_id

-- name: read_head_digests
-- The doc_ids and digests of the next heads in order, packed into 24 bytes for each head. Relies on the leaf's key for the
-- order.
SELECT coalesce(string_agg(int8send(doc_id) || uuid_send(feature_digest), CAST('' AS bytea)), CAST('' AS bytea))
FROM (
    SELECT doc_id, feature_digest FROM {signature} AS signature
    WHERE head_id = doc_id AND doc_id > %(after)s ORDER BY doc_id LIMIT %(batch)s
) AS next

-- name: count_features
-- Counts after all documents were signed: heads; documents with features, with exactly one feature, and with none; features
-- of all heads. Reads the whole table.
SELECT count(*) FILTER (WHERE head_id = doc_id), count(*) FILTER (WHERE feature_count > 0), count(*) FILTER (WHERE feature_count = 1),
    count(*) FILTER (WHERE feature_count = 0), coalesce(sum(feature_count) FILTER (WHERE head_id = doc_id), 0)
FROM {signature} AS signature

-- name: index_signatures
-- Create the indexes that find twins by digest and by head, after the load; queries for heads use signed_document. Later
-- digests may go to any page of the index, so all pages are left with room for a quarter more.
CREATE INDEX ON {signature_leaf} (feature_digest, doc_id) WITH (fillfactor = 75) WHERE feature_digest IS NOT NULL;
CREATE INDEX ON {signature_leaf} (head_id, doc_id) WHERE head_id <> doc_id

-- name: assign_heads
-- Assign each twin its head, which is the document with the smallest doc_id and the same digest. Loaded rows are their own
-- heads, so only digests of several documents need a change. Relies on the index on feature_digest, which is read in order.
WITH twins AS (
    SELECT feature_digest, min(doc_id) AS first_id
    FROM (SELECT feature_digest, doc_id FROM {signature} AS signature WHERE feature_digest IS NOT NULL ORDER BY feature_digest) AS ordered
    GROUP BY feature_digest HAVING count(*) > 1
)
UPDATE {signature_leaf} AS signature SET head_id = twins.first_id
FROM twins WHERE {of_generation} AND signature.feature_digest = twins.feature_digest AND signature.head_id IS DISTINCT FROM twins.first_id

-- name: copy_signatures
-- Copy the signatures of a large generation, without sketches, to signed_document, and create the triggers on its own tables
-- that capture changes and keep the copies equal.
SELECT nearsim.copy_signatures({generation_id}), nearsim.create_capture_triggers('_' || {generation_id})

-- name: read_head_sketches
-- The sketches of the heads in a range of doc_ids, in order, from which band rows are computed. Relies on the leaf's key for
-- the order.
SELECT doc_id, sketch FROM {signature} AS signature
WHERE head_id = doc_id AND doc_id BETWEEN %(low)s AND %(high)s ORDER BY doc_id

-- name: stream_heads
-- The signatures of all heads in order, for verifying pairs. Reads the whole table; relies on the leaf's key for the order.
SELECT doc_id, sketch, feature_digest FROM {signature} AS signature WHERE head_id = doc_id ORDER BY doc_id

-- name: sample_sketches
-- A random sample of heads; the order of their digests is as good as random. Relies on the index on feature_digest.
SELECT doc_id, sketch, feature_digest FROM {signature} AS signature WHERE feature_digest IS NOT NULL AND head_id = doc_id
ORDER BY feature_digest LIMIT %(size)s

-- name: sample_heads
-- The heads that sample_sketches reads. Relies on the index on feature_digest.
SELECT doc_id FROM {signature} AS signature WHERE feature_digest IS NOT NULL AND head_id = doc_id
ORDER BY feature_digest LIMIT %(size)s

-- name: read_sketches
-- The sketches and digests of those documents that are heads, for verifying pairs. Relies on the leaf's key.
SELECT doc_id, sketch, feature_digest FROM {signature} AS signature
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id = doc_id
ORDER BY doc_id

-- name: read_heads
-- The heads with these digests, which are looked up one by one. Relies on the index on feature_digest.
SELECT head.doc_id, head.sketch, head.feature_digest
FROM (SELECT DISTINCT unnest(CAST(%(digests)s AS uuid[])) AS digest) AS query
CROSS JOIN LATERAL (
    SELECT doc_id, sketch, feature_digest FROM {signature} AS signature
    WHERE feature_digest = query.digest AND head_id = doc_id OFFSET 0
) AS head

-- name: read_signatures
-- The signatures of these documents, without sketches. Relies on the leaf's key.
SELECT doc_id, feature_digest, revision, head_id FROM {signature} AS signature WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: read_first_documents
-- The first document with each digest, which should be the head of its twins. Relies on the index on (feature_digest,
-- doc_id).
SELECT query.digest, first.doc_id FROM unnest(CAST(%(digests)s AS uuid[])) AS query (digest)
CROSS JOIN LATERAL (
    SELECT doc_id FROM {signature} AS signature WHERE feature_digest = query.digest ORDER BY doc_id LIMIT 1
) AS first

-- name: list_deleted
-- Signed documents with these digests that have been deleted. Relies on the index on feature_digest and on document_pkey.
SELECT doc_id FROM {signature} AS signature
WHERE feature_digest = ANY(CAST(%(digests)s AS uuid[]))
    AND NOT EXISTS (SELECT FROM nearsim.document WHERE document.doc_id = signature.doc_id)

-- name: find_duplicate_heads
-- Digests of heads for which there is another head, which was signed at the same time. Relies on the index on
-- (feature_digest, doc_id).
SELECT feature_digest FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(digests)s AS uuid[])) AS head (head_id, digest)
CROSS JOIN LATERAL (
    SELECT feature_digest FROM {signature} AS signature
    WHERE feature_digest = head.digest AND signature.head_id = doc_id AND doc_id <> head.head_id LIMIT 1
) AS other

-- name: find_retained
-- Those of the documents that exist and have not expired, and whether their present revision is signed. Relies on the keys
-- of documents and signatures.
SELECT document.doc_id, coalesce(signature.revision = document.revision, false)
FROM nearsim.document AS document LEFT JOIN {signature} AS signature USING (doc_id)
WHERE document.doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND document.collection_id IS NOT DISTINCT FROM %(collection_id)s
    AND {is_within_age}

-- name: update_revisions
-- Update revision and numbers of signatures whose features did not change. Relies on the leaf's key.
UPDATE {signature_leaf} AS signature SET revision = new.revision, numbers_digest = new.numbers_digest
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(revisions)s AS bigint[]), CAST(%(numbers)s AS bigint[]))
    AS new (doc_id, revision, numbers_digest)
WHERE {of_generation} AND signature.doc_id = new.doc_id

-- name: delete_signatures
-- Delete signatures; a trigger deletes their pairs. The rows are locked in the same order in which inserts of pairs lock
-- them. Relies on the leaf's key.
WITH locked AS MATERIALIZED (
    SELECT doc_id FROM {signature_leaf}
    WHERE {of_generation} AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) ORDER BY doc_id FOR UPDATE
)
DELETE FROM {signature_leaf}
WHERE {of_generation} AND doc_id = ANY (ARRAY(SELECT doc_id FROM locked))

-- name: reassign_digests
-- Make the document with the smallest doc_id the head, for each of these digests, which are looked up one by one. Relies on
-- the index on (feature_digest, doc_id) and on the leaf's key.
WITH twin AS MATERIALIZED (
    SELECT signed.* FROM unnest(CAST(%(digests)s AS uuid[])) AS query (digest)
    CROSS JOIN LATERAL (
        SELECT doc_id, feature_digest, head_id, min(doc_id) OVER () AS first_id
        FROM {signature} AS signature WHERE feature_digest = query.digest OFFSET 0
    ) AS signed
    WHERE signed.head_id <> signed.first_id
)
UPDATE {signature_leaf} AS signature SET head_id = twin.first_id
FROM twin
WHERE {of_generation}
    AND signature.doc_id = ANY (ARRAY(SELECT doc_id FROM twin)) AND signature.doc_id = twin.doc_id
    AND signature.feature_digest = twin.feature_digest

-- name: read_document_state
-- The state of a document in a generation: its revision, its signed revision, its number of features, whether it waits to be
-- signed, and whether it was set aside. Relies on the keys; reads all captured changes, which are few.
SELECT document.revision, signature.revision, signature.feature_count,
    coalesce(work.waits, false)
        OR EXISTS (SELECT FROM nearsim_index.visible_changes AS change
            WHERE change.doc_id = document.doc_id AND stage IS NULL OR change.collection_id IS NULL
                OR change.collection_id = document.collection_id AND change.doc_id IS NULL
                    AND coalesce(change.external_id, document.external_id) = document.external_id)
        OR EXISTS (SELECT FROM nearsim_index.queued_work WHERE generation_id = {generation_id} AND stage = 'compare'),
    coalesce(work.is_set_aside, false)
FROM nearsim.document
LEFT JOIN {signature} AS signature USING (doc_id)
CROSS JOIN LATERAL (
    SELECT bool_or(set_aside_at IS NULL) AS waits, bool_or(set_aside_at IS NOT NULL) AS is_set_aside
    FROM nearsim_index.queued_work
    WHERE generation_id = {generation_id} AND stage = 'sign' AND doc_id = document.doc_id
) AS work
WHERE document.doc_id = %(doc_id)s
