CREATE VIEW nearsim.buckets WITH (security_invoker = true) AS
SELECT live.collection, live.profile, live.collection_id, live.generation_id,
    CAST((bucket.bucket_hash >> 56) & 255 AS smallint) AS band_no, bucket.bucket_hash, bucket.members,
    CASE WHEN live.bucket_limit > 0 THEN least(bucket.members, live.bucket_limit) ELSE bucket.members END AS anchors,
    CASE WHEN live.bucket_limit > 0 AND bucket.members > live.bucket_limit
        THEN (bucket.members - live.bucket_limit) * (bucket.members - live.bucket_limit - 1) / 2 ELSE 0 END AS left_out,
    live.bucket_limit > 0 AND bucket.members > live.bucket_limit AS is_hot
FROM nearsim.live_generations AS live
CROSS JOIN LATERAL nearsim.count_buckets(live.generation_id) AS bucket;

COMMENT ON VIEW nearsim.buckets IS
    'Buckets with two or more members, counted from all band rows. Buckets with more members than the bucket limit are hot';
COMMENT ON COLUMN nearsim.buckets.generation_id IS 'The live generation of the profile';
COMMENT ON COLUMN nearsim.buckets.band_no IS 'Number of the band, the top byte of bucket_hash';
COMMENT ON COLUMN nearsim.buckets.bucket_hash IS 'Hash of the band, equal for all members';
COMMENT ON COLUMN nearsim.buckets.members IS 'Number of heads in the bucket';
COMMENT ON COLUMN nearsim.buckets.anchors IS
    'Number of anchors: the first members by doc_id, up to the bucket limit, with which every member is compared';
COMMENT ON COLUMN nearsim.buckets.left_out IS
    'Number of pairs of members that are not compared in this bucket because of the bucket limit; another bucket may link them';
COMMENT ON COLUMN nearsim.buckets.is_hot IS 'Whether the bucket has more members than the bucket limit';
