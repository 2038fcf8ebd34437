-- The candidate relation over a whole generation: two heads that share a bucket in which one of them is among the first
-- bucket_limit by doc_id (0: no limit). One index-only pass in the order of (bucket_hash, doc_id) numbers the members
-- and drops buckets of one; the rest is joined with itself.
WITH member AS MATERIALIZED (
    SELECT bucket_hash, doc_id, place FROM (
        SELECT bucket_hash, doc_id,
            row_number() OVER in_bucket AS place,
            lead(doc_id) OVER in_bucket AS next_id
        FROM {band} WINDOW in_bucket AS (PARTITION BY bucket_hash ORDER BY doc_id)
    ) AS numbered
    WHERE place > 1 OR next_id IS NOT NULL
)
SELECT DISTINCT anchor.doc_id AS left_id, other.doc_id AS right_id
FROM member AS anchor JOIN member AS other
    ON other.bucket_hash = anchor.bucket_hash AND other.doc_id > anchor.doc_id
WHERE (%(bucket_limit)s = 0 OR anchor.place <= %(bucket_limit)s) AND anchor.doc_id > %(after)s
ORDER BY left_id, right_id
