-- The candidates of a generation, by a self-join of its own table
SELECT l.doc_id AS left_id, r.doc_id AS right_id, count(*) AS shared_bands
FROM nearsim.band_1 AS l
JOIN nearsim.band_1 AS r ON r.bucket_hash = l.bucket_hash AND r.doc_id > l.doc_id
GROUP BY l.doc_id, r.doc_id
ORDER BY shared_bands DESC, left_id, right_id
LIMIT 20;
