-- Candidates of one band, by a self-join of a generation's own table
SELECT l.doc_id AS left_id, r.doc_id AS right_id, l.bucket_hash
FROM nearsim_index.band_1 AS l
JOIN nearsim_index.band_1 AS r ON r.bucket_hash = l.bucket_hash AND r.doc_id > l.doc_id
WHERE l.bucket_hash BETWEEN CAST(3 AS bigint) << 56 AND (CAST(4 AS bigint) << 56) - 1
ORDER BY l.bucket_hash, left_id, right_id
LIMIT 100;
