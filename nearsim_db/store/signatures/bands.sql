-- name: truncate_bands
-- Empty a generation's own band table before an interrupted load is repeated.
TRUNCATE {band_leaf}

-- name: clear_bands
-- The same as truncate_bands for a table that generations share. Relies on its key.
DELETE FROM {band_leaf} WHERE {of_generation}

-- name: index_bands
-- Create the only index after the load; builds and lookups use it. Its pages are left with room for a quarter more rows,
-- because inserting into a full page splits it, which costs 4 KB of write-ahead log and leaves two half-empty pages.
CREATE UNIQUE INDEX {band_index} ON {band_leaf} (bucket_hash, doc_id) WITH (fillfactor = 75)

-- name: identify_bands
-- Let logical replication identify deleted rows by the index. Without this, deletes would fail if a publication includes all
-- tables.
ALTER TABLE {band_leaf} REPLICA IDENTITY USING INDEX {band_index}

-- name: delete_bands
-- Delete the band rows of heads by bucket hashes that were computed again. Relies on the index on (bucket_hash, doc_id).
DELETE FROM {band_leaf} AS band
USING unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS target (doc_id, bucket_hash)
WHERE {of_generation} AND band.bucket_hash = target.bucket_hash AND band.doc_id = target.doc_id

-- name: find_links
-- The candidate relation over a range of buckets: each member of a bucket, except the first, with the anchors that precede
-- it in doc_id order, packed into eight bytes each. This is a self-join of band rows, which relies on index-only scans of
-- the index on (bucket_hash, doc_id).
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
-- The candidate relation for these heads, with bounded work. It differs from find_links in that it returns anchors before
-- and after the head, for the place of the head in the query, from 0. If a bucket is over the limit, it returns one more
-- member, from which an anchor learns that it has to search the bucket. Most buckets have no other member, which a single
-- probe finds out. Relies on index-only scans of the index on (bucket_hash, doc_id).
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
-- A slice, in doc_id order, of the members that are not anchors, from those buckets over the limit in which a head is an
-- anchor; look_up_candidates finds the other anchors. The work is bounded. Relies on index-only scans of the index on
-- (bucket_hash, doc_id).
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
-- The anchors of these buckets, and whether a bucket has further members. Relies on the index on (bucket_hash, doc_id).
SELECT bucket.bucket_hash, anchor.doc_id, EXISTS (
    SELECT FROM {band} AS band WHERE bucket_hash = bucket.bucket_hash ORDER BY doc_id OFFSET %(bucket_limit)s)
FROM (SELECT DISTINCT bucket_hash FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)) AS bucket
CROSS JOIN LATERAL (
    SELECT doc_id FROM {band} AS band WHERE bucket_hash = bucket.bucket_hash
    ORDER BY doc_id LIMIT %(bucket_limit)s
) AS anchor

-- name: find_full_buckets
-- The number of buckets, the size of the largest bucket, and the hashes, sizes and last anchors of the buckets over the
-- limit, sorted by hash. Reads the whole index on (bucket_hash, doc_id) in order. ORDER BY enforces this, because without
-- statistics the planner expects few groups and would hash them.
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
-- Collect planner statistics after the load. Loaded rows are frozen, so VACUUM is not necessary.
ANALYZE {band_leaf}

-- name: count_buckets
-- The number of buckets, the size of the largest bucket, the number of buckets over the limit, and the number of links that
-- the limit leaves out (a pair counts once for each bucket). Reads the whole index on (bucket_hash, doc_id) in order, as
-- find_full_buckets does.
SELECT count(*), coalesce(max(members), 0), count(*) FILTER (WHERE members > %(bucket_limit)s AND %(bucket_limit)s > 0),
    coalesce(sum((members - %(bucket_limit)s) * (members - %(bucket_limit)s - 1) / 2)
        FILTER (WHERE members > %(bucket_limit)s AND %(bucket_limit)s > 0), 0)
FROM (
    SELECT count(*) AS members
    FROM (SELECT bucket_hash FROM {band} AS band ORDER BY bucket_hash) AS ordered GROUP BY bucket_hash
) AS bucket
