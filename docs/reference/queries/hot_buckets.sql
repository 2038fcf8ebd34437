-- The largest buckets, and what the bucket limit leaves out of them
WITH largest AS MATERIALIZED (
    SELECT * FROM nearsim.buckets
    WHERE collection = 'demo' AND profile = 'default'  -- use your own
    ORDER BY members DESC, bucket_hash LIMIT 10
), first AS MATERIALIZED (
    SELECT bucket_hash, min(doc_id) AS doc_id
    FROM nearsim.band JOIN largest USING (generation_id, bucket_hash) GROUP BY bucket_hash
)
SELECT largest.band_no, largest.bucket_hash, largest.members, largest.left_out,
    document.external_id AS first_external_id, document.title AS first_title
FROM largest JOIN first USING (bucket_hash) JOIN nearsim.document USING (doc_id)
ORDER BY largest.members DESC, largest.bucket_hash;
