-- name: truncate_bands
-- Empty a generation's own band table before an interrupted load is repeated.
TRUNCATE {band_leaf}

-- name: clear_bands
-- As truncate_bands, in a table that generations share. Relies on the key.
DELETE FROM {band_leaf} WHERE {of_generation}

-- name: index_bands
-- Create the only index after the load; builds and lookups use it. Its pages have room for a quarter more rows: a full page
-- is split, which costs 4 KB of write-ahead log and leaves two halves.
CREATE UNIQUE INDEX {band_index} ON {band_leaf} (bucket_hash, doc_id) WITH (fillfactor = 75)

-- name: identify_bands
-- Identify deleted rows by the index for logical replication: under a publication of all tables, deletes would otherwise
-- fail.
ALTER TABLE {band_leaf} REPLICA IDENTITY USING INDEX {band_index}

-- name: delete_bands
-- Delete the band rows of heads by their recomputed keys. Relies on the index on (bucket_hash, doc_id).
DELETE FROM {band_leaf} AS band
USING unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS target (doc_id, bucket_hash)
WHERE {of_generation} AND band.bucket_hash = target.bucket_hash AND band.doc_id = target.doc_id

-- name: find_links
-- The candidate relation over a range of buckets: each member, except the first, of each bucket with the anchors before it
-- in doc_id order, eight bytes a doc_id. A self-join of band rows, index-only. Relies on the index on (bucket_hash, doc_id).
SELECT other.bucket_hash, other.doc_id, anchor.doc_ids
FROM (
    SELECT bucket_hash FROM {band} AS band WHERE bucket_hash BETWEEN %(low)s AND %(high)s
    GROUP BY bucket_hash HAVING count(*) > 1
) AS bucket
JOIN {band} AS other ON other.bucket_hash = bucket.bucket_hash
CROSS JOIN LATERAL (
    SELECT string_agg(int8send(doc_id), NULL) AS doc_ids FROM (
        SELECT doc_id FROM {band} AS band WHERE bucket_hash = other.bucket_hash AND doc_id < other.doc_id
        ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0)
    ) AS first
) AS anchor
WHERE anchor.doc_ids IS NOT NULL

-- name: look_up_candidates
-- The candidate relation for some heads, bounded: as find_links, but with anchors before and after the head, by the place
-- of the head in the query, from 0. A bucket over the limit has one member more, from which an anchor learns that it has to
-- search the bucket. Most buckets have no other member, which one probe finds out. Index-only. Relies on the index on
-- (bucket_hash, doc_id).
SELECT other.place - 1, anchor.doc_ids
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) WITH ORDINALITY
    AS other (doc_id, bucket_hash, place)
CROSS JOIN LATERAL (
    SELECT string_agg(int8send(doc_id), NULL) AS doc_ids FROM (
        SELECT doc_id FROM {band} AS band WHERE bucket_hash = other.bucket_hash
        ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0) + 1
    ) AS first
) AS anchor
WHERE EXISTS (SELECT FROM {band} AS band WHERE bucket_hash = other.bucket_hash AND doc_id <> other.doc_id OFFSET 0)

-- name: look_up_members
-- A slice, in doc_id order, of the members that are no anchors, of buckets over the limit of which a head is an anchor;
-- look_up_candidates finds the other anchors. Index-only and bounded. Relies on the index on (bucket_hash, doc_id).
SELECT DISTINCT member.doc_id
FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} AS band WHERE bucket_hash = query.bucket_hash
    ORDER BY doc_id OFFSET %(bucket_limit)s - 1 LIMIT 1
) AS last_anchor
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} AS band
    WHERE bucket_hash = query.bucket_hash AND doc_id > greatest(last_anchor.doc_id, %(after)s)
    ORDER BY doc_id LIMIT %(batch)s
) AS member
WHERE %(doc_id)s <= last_anchor.doc_id
ORDER BY member.doc_id LIMIT %(batch)s

-- name: read_anchors
-- Anchors of some buckets, and whether a bucket has more members. Relies on the index on (bucket_hash, doc_id).
SELECT bucket.bucket_hash, anchor.doc_id, EXISTS (
    SELECT FROM {band} AS band WHERE bucket_hash = bucket.bucket_hash ORDER BY doc_id OFFSET %(bucket_limit)s)
FROM (SELECT DISTINCT bucket_hash FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)) AS bucket
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} AS band WHERE bucket_hash = bucket.bucket_hash
    ORDER BY doc_id LIMIT %(bucket_limit)s
) AS anchor

-- name: find_full_buckets
-- Number of buckets, size of the largest one, and the hashes, sizes and last anchors of the buckets over the limit, in
-- order. Reads the whole index on (bucket_hash, doc_id) in order: without statistics the planner expects few groups and
-- would hash them.
WITH bucket AS MATERIALIZED (
    SELECT count(*) AS buckets, max(members) AS largest,
        array_agg(bucket_hash ORDER BY bucket_hash) FILTER (WHERE members > %(bucket_limit)s AND %(bucket_limit)s > 0)
            AS hashes,
        array_agg(members ORDER BY bucket_hash) FILTER (WHERE members > %(bucket_limit)s AND %(bucket_limit)s > 0)
            AS sizes
    FROM (
        SELECT bucket_hash, count(*) AS members
        FROM (SELECT bucket_hash FROM {band} AS band ORDER BY bucket_hash) AS ordered GROUP BY bucket_hash
    ) AS counted
)
SELECT buckets, coalesce(largest, 0), coalesce(hashes, '{{}}'), coalesce(sizes, '{{}}'), ARRAY(
    SELECT anchor.doc_id FROM unnest(hashes) WITH ORDINALITY AS full_bucket (bucket_hash, place)
    CROSS JOIN LATERAL (
        SELECT doc_id FROM {band} AS band WHERE bucket_hash = full_bucket.bucket_hash
        ORDER BY doc_id OFFSET %(bucket_limit)s - 1 LIMIT 1
    ) AS anchor
    ORDER BY full_bucket.place)
FROM bucket

-- name: analyze_bands
-- Planner statistics after the load. Loaded rows are frozen, so there is nothing to do for VACUUM.
ANALYZE {band_leaf}

-- name: count_buckets
-- Number of buckets, size of the largest one, buckets over the limit, and links left out (a pair counts once per bucket).
-- Reads the whole index on (bucket_hash, doc_id) in order, as find_full_buckets does.
SELECT count(*), coalesce(max(members), 0), count(*) FILTER (WHERE members > %(bucket_limit)s AND %(bucket_limit)s > 0),
    coalesce(sum((members - %(bucket_limit)s) * (members - %(bucket_limit)s - 1) / 2)
        FILTER (WHERE members > %(bucket_limit)s AND %(bucket_limit)s > 0), 0)
FROM (
    SELECT count(*) AS members
    FROM (SELECT bucket_hash FROM {band} AS band ORDER BY bucket_hash) AS ordered GROUP BY bucket_hash
) AS bucket
