-- name: list_ids_after
-- The next documents of a collection, or signatures of documents that are gone, from one on. Relies on
-- document_collection_doc and on the leaf's key.
SELECT doc_id FROM (
    (SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s AND doc_id > %(after)s
        ORDER BY doc_id LIMIT %(amount)s)
    UNION
    (SELECT doc_id FROM {signature} WHERE doc_id > %(after)s ORDER BY doc_id LIMIT %(amount)s)
) AS either
ORDER BY doc_id LIMIT %(amount)s

-- name: sample_ids
-- A random sample of the documents of a collection and of the signatures whose documents are gone: those whose hashed
-- doc_id comes first. Relies on document_collection_doc and on the leaf's key, of which it reads all entries.
SELECT doc_id FROM (
    SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s
    UNION
    SELECT doc_id FROM {signature}
) AS either
ORDER BY hashint8extended(doc_id, CAST(%(seed)s AS bigint)), doc_id LIMIT %(amount)s

-- name: read_standings
-- Some documents and how they are signed: whether each is there, is inside the window, its signature, and the first
-- document with the digest of that. Relies on the keys and on the index on (feature_digest, doc_id).
SELECT asked.doc_id, document.doc_id IS NOT NULL, coalesce(
        coalesce(document.published_at, document.created_at)
            >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity'), false),
    document.revision, signed.doc_id IS NOT NULL, signed.revision, signed.feature_count, signed.feature_digest,
    signed.sketch, signed.numbers_digest, signed.head_id, (
        SELECT twin.doc_id FROM {signature} AS twin WHERE twin.feature_digest = signed.feature_digest
        ORDER BY twin.feature_digest, twin.doc_id LIMIT 1)
FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS asked (doc_id)
LEFT JOIN nearsim.document AS document
    ON document.doc_id = asked.doc_id AND document.collection_id = %(collection_id)s
LEFT JOIN {signature} AS signed ON signed.doc_id = asked.doc_id
ORDER BY asked.doc_id

-- name: find_changing
-- Those of some documents that have work queued, or were written since work was last made of it; 0 where all may have
-- changed. Relies on work_pkey; reads all changes that are not work yet.
SELECT work.doc_id
FROM unnest(CAST(%(stages)s AS text[])) AS stage (name)
JOIN nearsim.work ON work.generation_id = {generation_id} AND work.stage = stage.name
WHERE work.doc_id = 0 OR work.doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
UNION
SELECT coalesce(doc_id, 0) FROM nearsim.change
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
    OR doc_id IS NULL AND external_id IS NULL AND coalesce(collection_id, %(collection_id)s) = %(collection_id)s

-- name: find_missing_bands
-- Which of some band rows are not there. Relies on the index on (bucket_hash, doc_id), which is asked for each.
SELECT DISTINCT asked.doc_id
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS asked (doc_id, bucket_hash)
WHERE NOT EXISTS (
    SELECT FROM {band} AS band
    WHERE band.bucket_hash = asked.bucket_hash AND band.doc_id = asked.doc_id OFFSET 0)

-- name: sum_bands
-- The band rows of each document: how many, and the sum without carry of their hashes. Reads and sorts the whole table.
SELECT doc_id, count(*), bit_xor(bucket_hash) FROM {band} GROUP BY doc_id ORDER BY doc_id

-- name: read_heads_in_order
-- The sketches of all heads by doc_id. Relies on the leaf's key, or sorts.
SELECT doc_id, sketch FROM {signature} WHERE head_id = doc_id ORDER BY doc_id

-- name: read_pairs_at
-- The pairs whose right end, or with `both` either end, is one of some documents, with all that is stored of them.
-- Relies on the key and on the index on right_id.
SELECT left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance
FROM {similar_pair} WHERE right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
UNION
SELECT left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance
FROM {similar_pair} WHERE %(both)s AND left_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: sum_leaf
-- How many rows one of a generation's own tables has, and the sum without carry of their hashed keys.
SELECT count(*), coalesce(bit_xor(hashint8extended({first}, hashint8extended({second}, 0))), 0) FROM {leaf}

-- name: read_leaf_state
-- How one of a generation's own tables stands in the catalog: no row if it is missing; else whether it is logged, whether
-- it is a partition of its parent, the columns of its indexes, of those that cannot be used, and its foreign keys.
WITH own AS (
    SELECT indisvalid AND indisready AND indislive AS is_usable, (
        SELECT string_agg(attname, ', ' ORDER BY place) FROM unnest(CAST(indkey AS smallint[])) WITH ORDINALITY AS k (attnum, place)
        JOIN pg_catalog.pg_attribute ON attrelid = indrelid AND pg_attribute.attnum = k.attnum) AS columns
    FROM pg_catalog.pg_index WHERE indrelid = pg_catalog.to_regclass(%(leaf)s)
)
SELECT relpersistence = 'p',
    EXISTS (
        SELECT FROM pg_catalog.pg_inherits
        WHERE inhrelid = pg_class.oid AND inhparent = CAST(%(parent)s AS regclass) AND NOT inhdetachpending),
    ARRAY(SELECT columns FROM own WHERE is_usable), ARRAY(SELECT columns FROM own WHERE NOT is_usable),
    (SELECT count(*) FROM pg_catalog.pg_constraint WHERE conrelid = pg_class.oid AND contype = 'f' AND convalidated)
FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass(%(leaf)s)

-- name: find_misshapen
-- Documents whose sketch has not the size that the recipe gives it. Reads the whole table.
SELECT doc_id FROM {signature} WHERE octet_length(sketch) <> %(bytes)s ORDER BY doc_id

-- name: read_families
-- Those of some documents that are signed, and all that share a head or a digest with them. Relies on the key and on the
-- indexes on feature_digest and head_id.
WITH own AS MATERIALIZED (
    SELECT doc_id, head_id, feature_digest FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
)
SELECT doc_id FROM own
UNION
SELECT doc_id FROM {signature} WHERE doc_id = ANY(ARRAY(SELECT head_id FROM own))
UNION
SELECT doc_id FROM {signature} WHERE head_id <> doc_id AND head_id = ANY(CAST(%(doc_ids)s AS bigint[]))
UNION
SELECT doc_id FROM {signature} WHERE head_id <> doc_id AND head_id = ANY(ARRAY(SELECT head_id FROM own))
UNION
SELECT doc_id FROM {signature} WHERE feature_digest = ANY(ARRAY(SELECT feature_digest FROM own))

-- name: delete_all_bands
-- All band rows of some documents, whatever their keys are; returns in which buckets they were. Reads the whole table.
WITH gone AS (DELETE FROM {band} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING bucket_hash)
SELECT DISTINCT bucket_hash FROM gone

-- name: delete_some_pairs
-- Some pairs go. Relies on the key.
DELETE FROM {similar_pair} AS pair
USING unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) AS gone (left_id, right_id)
WHERE pair.left_id = gone.left_id AND pair.right_id = gone.right_id

-- name: read_external_ids
-- The owner's names of some documents. Relies on document_pkey.
SELECT doc_id, external_id FROM nearsim.document WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
