-- name: find_links
-- The candidate relation over a range of buckets, with the same columns as the statement for one server. Each node finds and
-- packs the links of its own buckets. Relies on the index on (bucket_hash, doc_id).
SELECT bucket.bucket_hash, other.doc_id, anchor.doc_ids
FROM (
    SELECT bucket_hash, array_agg(doc_id ORDER BY doc_id) AS members
    FROM {band} AS band WHERE bucket_hash BETWEEN %(low)s AND %(high)s
    GROUP BY bucket_hash HAVING count(*) > 1
) AS bucket
CROSS JOIN LATERAL unnest(members) WITH ORDINALITY AS other (doc_id, place)
CROSS JOIN LATERAL (
    SELECT string_agg(int8send(doc_id), NULL) AS doc_ids
    FROM unnest(members[:least(place - 1, NULLIF(%(bucket_limit)s, 0))]) AS first (doc_id)
) AS anchor
WHERE anchor.doc_ids IS NOT NULL

-- name: look_up_candidates
-- The candidate relation for these heads, with bounded work, in one statement; the columns are those of the statement for
-- one server. The limit of each bucket is pushed down, because all rows of a bucket are on one shard; for this Citus needs
-- the outer LIMIT, which is the largest number. Queries only the shards of the buckets. Relies on index-only scans of the
-- index on (bucket_hash, doc_id).
SELECT query.place - 1, bucket.members
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) WITH ORDINALITY
    AS query (doc_id, bucket_hash, place)
CROSS JOIN LATERAL (
    SELECT bucket_hash, string_agg(int8send(doc_id), NULL ORDER BY doc_id) AS members FROM (
        SELECT bucket_hash, doc_id FROM {band} AS band WHERE bucket_hash = query.bucket_hash
            AND {in_buckets}
        ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0) + 1
    ) AS first
    GROUP BY bucket_hash HAVING bool_or(doc_id <> query.doc_id)
) AS bucket
LIMIT 9223372036854775807

-- name: delete_bands
-- Delete the band rows of heads by bucket hashes that were computed again, on the shards of their buckets, as in
-- look_up_candidates. Relies on the index on (bucket_hash, doc_id).
DELETE FROM {band_leaf} AS band
USING unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS target (doc_id, bucket_hash)
WHERE {of_generation} AND band.bucket_hash = target.bucket_hash AND band.doc_id = target.doc_id
    AND {in_buckets}

-- name: look_up_members
-- A slice, in doc_id order, of the members that are not anchors, from those buckets over the limit in which a head is an
-- anchor. The work is bounded. Relies on index-only scans of the index on (bucket_hash, doc_id).
SELECT DISTINCT member.doc_id
FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
CROSS JOIN LATERAL (
    SELECT bucket_hash, max(doc_id) AS doc_id FROM (
        SELECT bucket_hash, doc_id FROM {band} AS band WHERE bucket_hash = query.bucket_hash
            AND {in_buckets}
        ORDER BY doc_id LIMIT %(bucket_limit)s
    ) AS anchor
    GROUP BY bucket_hash HAVING count(*) = %(bucket_limit)s
) AS last_anchor
CROSS JOIN LATERAL (
    SELECT bucket_hash, doc_id FROM {band} AS band
    WHERE bucket_hash = last_anchor.bucket_hash AND doc_id > greatest(last_anchor.doc_id, %(after)s)
        AND {in_buckets}
    ORDER BY doc_id LIMIT %(batch)s
) AS member
WHERE %(doc_id)s <= last_anchor.doc_id
ORDER BY member.doc_id LIMIT %(batch)s

-- name: read_anchors
-- The anchors of these buckets, and whether a bucket has further members. Relies on the index on (bucket_hash, doc_id).
SELECT member.bucket_hash, member.doc_id, member.members > %(bucket_limit)s
FROM (SELECT DISTINCT bucket_hash FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)) AS bucket
CROSS JOIN LATERAL (
    SELECT bucket_hash, doc_id, row_number() OVER (PARTITION BY bucket_hash ORDER BY doc_id) AS place,
        count(*) OVER (PARTITION BY bucket_hash) AS members
    FROM (
        SELECT bucket_hash, doc_id FROM {band} AS band WHERE bucket_hash = bucket.bucket_hash
            AND {in_buckets}
        ORDER BY doc_id LIMIT %(bucket_limit)s + 1
    ) AS first
) AS member
WHERE member.place <= %(bucket_limit)s
LIMIT 9223372036854775807

-- name: find_full_buckets
-- The number of buckets, the size of the largest bucket, and the hashes, sizes and last anchors of the buckets over the
-- limit, sorted by hash; counted on the nodes. Reads the whole index on (bucket_hash, doc_id) twice.
WITH total AS MATERIALIZED (
    SELECT count(*) AS buckets, coalesce(max(members), 0) AS largest
    FROM (SELECT bucket_hash, count(*) AS members FROM {band} AS band GROUP BY bucket_hash) AS counted
), hot AS MATERIALIZED (
    SELECT bucket_hash, count(*) AS members, (array_agg(doc_id ORDER BY doc_id))[%(bucket_limit)s] AS last_anchor
    FROM {band} AS band WHERE %(bucket_limit)s > 0 GROUP BY bucket_hash HAVING count(*) > %(bucket_limit)s
)
SELECT (SELECT buckets FROM total), (SELECT largest FROM total),
    coalesce(array_agg(bucket_hash ORDER BY bucket_hash), '{{}}'), coalesce(array_agg(members ORDER BY bucket_hash), '{{}}'),
    coalesce(array_agg(last_anchor ORDER BY bucket_hash), '{{}}')
FROM hot

-- name: find_missing_bands
-- Documents of which a band row is missing. Relies on the index on (bucket_hash, doc_id), which is probed for each row.
WITH existing AS MATERIALIZED (
    SELECT band.doc_id, band.bucket_hash
    FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS requested (doc_id, bucket_hash)
    JOIN {band} AS band ON band.bucket_hash = requested.bucket_hash AND band.doc_id = requested.doc_id
        AND {in_buckets}
)
SELECT DISTINCT doc_id FROM (
    SELECT doc_id, bucket_hash
    FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS requested (doc_id, bucket_hash)
    EXCEPT SELECT doc_id, bucket_hash FROM existing
) AS missing

-- name: read_large_buckets
-- The largest buckets with two or more members, with the names of their first members; and, over all such buckets, their
-- number, the number of buckets over the limit (0 means no limit), and the number of links left out. Relies on the index on
-- (bucket_hash, doc_id).
WITH bucket AS MATERIALIZED (
    SELECT bucket_hash, members,
        CASE WHEN %(bucket_limit)s > 0 AND members > %(bucket_limit)s
            THEN (members - %(bucket_limit)s) * (members - %(bucket_limit)s - 1) / 2 ELSE 0 END AS left_out
    FROM nearsim.count_buckets({generation_id})
), large AS MATERIALIZED (
    SELECT * FROM bucket ORDER BY members DESC, bucket_hash LIMIT %(amount)s
), member AS MATERIALIZED (
    SELECT first.bucket_hash, first.doc_id FROM large CROSS JOIN LATERAL (
        SELECT bucket_hash, doc_id FROM {band} AS band WHERE bucket_hash = large.bucket_hash ORDER BY doc_id LIMIT %(members)s
    ) AS first
    LIMIT 9223372036854775807
)
SELECT large.bucket_hash, large.members, large.left_out, (
        SELECT array_agg(coalesce(document.title, document.external_id) ORDER BY member.doc_id)
        FROM member JOIN nearsim.document USING (doc_id) WHERE member.bucket_hash = large.bucket_hash),
    (SELECT count(*) FROM bucket),
    (SELECT count(*) FROM bucket WHERE %(bucket_limit)s > 0 AND members > %(bucket_limit)s),
    (SELECT sum(left_out) FROM bucket)
FROM large
ORDER BY large.members DESC, large.bucket_hash

-- name: read_shared_buckets
-- The buckets that two documents share, with the same columns as the statement for one server; the heads of each bucket are
-- counted on its shard. Relies on the leaf's keys and on the index on (bucket_hash, doc_id).
WITH shared AS MATERIALIZED (
    SELECT least(left_signature.head_id, right_signature.head_id) AS head_id, shared.bucket_hash
    FROM {shared_buckets}
    WHERE generation.generation_id = {generation_id}
), counted AS MATERIALIZED (
    SELECT member.bucket_hash, count(*) AS members, count(*) FILTER (WHERE member.doc_id <= shared.head_id) AS place
    FROM {band} AS member JOIN shared ON shared.bucket_hash = member.bucket_hash
    GROUP BY member.bucket_hash
)
SELECT CAST((bucket_hash >> 56) & 255 AS integer), lpad(to_hex(bucket_hash), 16, '0'), coalesce(members, 0),
    coalesce(place, 0)
FROM shared LEFT JOIN counted USING (bucket_hash)
ORDER BY 1, 2
