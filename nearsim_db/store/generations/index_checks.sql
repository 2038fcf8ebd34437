-- name: list_ids_after
-- Read the next doc_ids of the documents of a collection and of signatures; a signature may outlive its document. Relies
-- on document_collection_doc and on the key of the signatures.
SELECT doc_id FROM (
    (SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
        ORDER BY doc_id LIMIT %(amount)s)
    UNION
    (SELECT doc_id FROM {signature} AS signature WHERE doc_id > %(after)s ORDER BY doc_id LIMIT %(amount)s)
) AS either
ORDER BY doc_id LIMIT %(amount)s

-- name: sample_ids
-- Read a random sample of the doc_ids of the documents of a collection and of signatures, namely those with the smallest
-- hashes. A signature may outlive its document. Reads all entries of the collection in document_collection_doc, and of
-- the generation in the key of the signatures.
SELECT doc_id FROM (
    SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s
    UNION
    SELECT doc_id FROM {signature} AS signature
) AS either
ORDER BY hashint8extended(doc_id, CAST(%(seed)s AS bigint)), doc_id LIMIT %(amount)s

-- name: read_signed_documents
-- Read documents with their signatures: whether the document exists, whether it has not expired, its revision, its
-- signature, and the first signed document with the same digest. Relies on the keys and on the index on (feature_digest,
-- doc_id).
SELECT requested.doc_id, document.doc_id IS NOT NULL, coalesce({is_within_age}, false),
    document.revision, signed.doc_id IS NOT NULL, signed.revision, signed.feature_count, signed.feature_digest,
    signed.sketch, signed.numbers_digest, signed.head_id, (
        SELECT twin.doc_id FROM {signature} AS twin WHERE twin.feature_digest = signed.feature_digest
        ORDER BY twin.feature_digest, twin.doc_id LIMIT 1)
FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS requested (doc_id)
LEFT JOIN nearsim.document AS document
    ON document.doc_id = requested.doc_id AND document.collection_id IS NOT DISTINCT FROM %(collection_id)s
LEFT JOIN {signature} AS signed ON signed.doc_id = requested.doc_id
ORDER BY requested.doc_id

-- name: find_pending_documents
-- Read which of the given documents have queued work or captured changes; a row with 0 means that all documents may have
-- changed. Relies on work_pkey; reads all captured changes.
SELECT work.doc_id
FROM unnest(CAST(%(stages)s AS text[])) AS stage (name)
JOIN nearsim_index.queued_work AS work ON work.generation_id = {generation_id} AND work.stage = stage.name
WHERE work.doc_id = 0 OR work.doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
UNION
SELECT coalesce(doc_id, 0) FROM nearsim.change
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
    OR doc_id IS NULL AND external_id IS NULL AND coalesce(collection_id, %(collection_id)s) = %(collection_id)s

-- name: find_missing_bands
-- Read which documents lack one of the given band rows. Relies on the index on (bucket_hash, doc_id), in which it looks
-- up each of these rows.
SELECT DISTINCT requested.doc_id
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS requested (doc_id, bucket_hash)
WHERE NOT EXISTS (
    SELECT FROM {band} AS band
    WHERE band.bucket_hash = requested.bucket_hash AND band.doc_id = requested.doc_id OFFSET 0)

-- name: read_bands_of_all
-- Read all documents that are heads or have band rows, in the order of doc_id: whether the document is a head, its sketch
-- (`empty` if it is no head), the number of its band rows, and the XOR of their hashes. Reads both tables. The sums are
-- MATERIALIZED, because Citus can join sums over several nodes only on the coordinator.
WITH summed AS MATERIALIZED (
    SELECT doc_id, count(*) AS number, bit_xor(bucket_hash) AS hashes FROM {band} AS band GROUP BY doc_id
)
SELECT doc_id, head.doc_id IS NOT NULL, coalesce(head.sketch, %(empty)s), coalesce(summed.number, 0),
    coalesce(summed.hashes, 0)
FROM summed FULL JOIN (SELECT doc_id, sketch FROM {signature} AS signature WHERE head_id = doc_id) AS head USING (doc_id)
ORDER BY doc_id

-- name: read_pairs_at
-- Read the pairs whose right document, or with `both` either document, is one of the given ones. Relies on the key and on
-- the index on right_id.
SELECT pair.left_id, pair.right_id, pair.similarity, pair.intersection_size, pair.union_size, pair.estimate,
    pair.shared_bands, pair.distance, nearsim.is_exact(generation.recipe), pair.in_review,
    pair.by_passage, pair.longest_passage
FROM (
    SELECT * FROM {stored_pair} AS similar_pair WHERE right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
    UNION
    SELECT * FROM {stored_pair} AS similar_pair WHERE %(both)s AND left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
) AS pair
CROSS JOIN nearsim.generation WHERE generation.generation_id = {generation_id}

-- name: checksum_leaf
-- Read the number of rows of a table, and the XOR of the hashes of their keys. Reads the whole table or the whole index.
SELECT count(*), coalesce(bit_xor(hashint8extended({first}, hashint8extended({second}, 0))), 0) FROM {leaf} AS leaf

-- name: count_differing_copies
-- Read the number of signatures that differ from their copies in signed_document, or that only one of the two tables has.
-- Reads both tables.
SELECT count(*) FROM {signature} AS signature
FULL JOIN (SELECT * FROM nearsim_index.signed_document WHERE generation_id = {generation_id}) AS copy USING (doc_id)
WHERE (signature.feature_count, signature.head_id, signature.revision, signature.numbers_digest)
    IS DISTINCT FROM (copy.feature_count, copy.head_id, copy.revision, copy.numbers_digest)

-- name: restore_copies
-- Fill signed_document again. Queries that read it wait until this is done.
SELECT nearsim.restore_copies()

-- name: restore_shared
-- Build the table of all pairs, or of all members of clusters, again from those of its rows that can still be read. Returns
-- the generations that may have lost rows. While it reads the table, other sessions may read but not change it; while it
-- puts rows back, they wait.
SELECT nearsim.restore_shared(%(parent)s)

-- name: queue_heads
-- Queue all heads of a generation to be searched again, in the order of the queue. Relies on work_pkey.
INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage)
SELECT {generation_id}, doc_id, 'search' FROM {signature} AS signature WHERE head_id = doc_id ORDER BY doc_id
{repeat_on_conflict}

-- name: read_table_state
-- Read what the catalog says about a table: whether it is logged and whether it is attached, the columns of its usable and
-- of its unusable indexes, and the number of its enabled triggers. Returns no row if the table is missing. Reads only the
-- catalog.
WITH table_index AS (
    SELECT indisvalid AND indisready AND indislive AS is_usable, (
        SELECT string_agg(attname, ', ' ORDER BY place) FROM unnest(CAST(indkey AS smallint[])) WITH ORDINALITY AS k (attnum, place)
        JOIN pg_catalog.pg_attribute ON attrelid = indrelid AND pg_attribute.attnum = k.attnum) AS columns
    FROM pg_catalog.pg_index WHERE indrelid = pg_catalog.to_regclass(%(leaf)s)
)
SELECT relpersistence = 'p',
    EXISTS (
        SELECT FROM pg_catalog.pg_inherits
        WHERE inhrelid = pg_class.oid AND inhparent = pg_catalog.to_regclass(%(parent)s) AND NOT inhdetachpending),
    ARRAY(SELECT columns FROM table_index WHERE is_usable), ARRAY(SELECT columns FROM table_index WHERE NOT is_usable),
    (SELECT count(*) FROM pg_catalog.pg_trigger
        WHERE tgrelid = pg_class.oid AND NOT tgisinternal AND tgenabled IN ('O', 'A'))
FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass(%(leaf)s)

-- name: list_indexes
-- Read the names of the indexes of a table. Reads only the catalog.
SELECT relname FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON oid = indexrelid
WHERE indrelid = CAST(%(table)s AS regclass) ORDER BY indexrelid

-- name: rebuild_index
-- Build an index again. Indexes are rebuilt one by one, because REINDEX of a whole table leaves out invalid indexes.
REINDEX INDEX CONCURRENTLY {index}

-- name: find_malformed_sketches
-- Find documents whose sketch does not have the size `bytes`; if this is 0, a sketch may have any number of 64-bit values.
-- Reads the whole table.
SELECT doc_id FROM {signature} AS signature
WHERE octet_length(sketch) <> %(bytes)s AND (%(bytes)s > 0 OR octet_length(sketch) %% 8 > 0) ORDER BY doc_id

-- name: read_families
-- Read which of the given documents are signed, and all documents that share a head or a digest with them. Relies on the
-- key and on the indexes on feature_digest and head_id.
WITH requested AS MATERIALIZED (
    SELECT doc_id, head_id, feature_digest FROM {signature} AS signature WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
)
SELECT doc_id FROM requested
UNION
SELECT doc_id FROM {signature} AS signature WHERE doc_id = ANY(ARRAY(SELECT head_id FROM requested))
UNION
SELECT doc_id FROM {signature} AS signature WHERE head_id <> doc_id AND head_id = ANY(CAST(%(doc_ids)s AS bigint[]))
UNION
SELECT doc_id FROM {signature} AS signature WHERE head_id <> doc_id AND head_id = ANY(ARRAY(SELECT head_id FROM requested))
UNION
SELECT doc_id FROM {signature} AS signature WHERE feature_digest = ANY(ARRAY(SELECT feature_digest FROM requested))

-- name: delete_all_bands
-- Delete all band rows of the given documents without knowing their keys, and return their buckets. Reads the whole table.
WITH deleted AS (
    DELETE FROM {band_leaf} WHERE {of_generation} AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING bucket_hash
)
SELECT DISTINCT bucket_hash FROM deleted

-- name: delete_pairs
-- Delete pairs by their two documents. Relies on the key.
DELETE FROM {similar_pair_leaf} AS pair
USING unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) AS target (left_id, right_id)
WHERE {of_view} AND pair.left_id = target.left_id AND pair.right_id = target.right_id

-- name: read_external_ids
-- Read the external ids of documents. Relies on document_pkey.
SELECT doc_id, external_id FROM nearsim.document WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
