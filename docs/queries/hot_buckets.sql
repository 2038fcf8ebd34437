-- The largest buckets, and what the bucket limit leaves out of them
SELECT bucket.band_no, bucket.bucket_hash, bucket.members, bucket.left_out,
    document.external_id AS first_external_id, document.title AS first_title
FROM (
    SELECT * FROM nearsim.buckets
    WHERE collection = 'demo' AND profile = 'default'  -- use your own
    ORDER BY members DESC, bucket_hash LIMIT 10
) AS bucket
CROSS JOIN LATERAL (
    SELECT min(doc_id) AS doc_id FROM nearsim.band
    WHERE band.generation_id = bucket.generation_id AND band.bucket_hash = bucket.bucket_hash
) AS first
JOIN nearsim.document USING (doc_id)
ORDER BY bucket.members DESC, bucket.bucket_hash;
