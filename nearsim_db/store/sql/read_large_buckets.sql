-- The largest buckets of two or more members, each with the first of them, and over all of these: how many there are, how many
-- are over the bucket limit (0: no limit), how many links it leaves out. Relies on the index on (bucket_hash, doc_id).
WITH bucket AS MATERIALIZED (
    SELECT bucket_hash, members,
        CASE WHEN %(bucket_limit)s > 0 AND members > %(bucket_limit)s
            THEN (members - %(bucket_limit)s) * (members - %(bucket_limit)s - 1) / 2 ELSE 0 END AS left_out
    FROM nearsim.count_buckets({generation_id})
)
SELECT large.bucket_hash, large.members, large.left_out, first.names,
    (SELECT count(*) FROM bucket),
    (SELECT count(*) FROM bucket WHERE %(bucket_limit)s > 0 AND members > %(bucket_limit)s),
    (SELECT sum(left_out) FROM bucket)
FROM (SELECT * FROM bucket ORDER BY members DESC, bucket_hash LIMIT %(amount)s) AS large
CROSS JOIN LATERAL (
    SELECT array_agg(coalesce(document.title, document.external_id) ORDER BY member.doc_id) AS names
    FROM (SELECT doc_id FROM {band} WHERE bucket_hash = large.bucket_hash ORDER BY doc_id LIMIT %(members)s) AS member
    JOIN nearsim.document USING (doc_id)
) AS first
ORDER BY large.members DESC, large.bucket_hash
