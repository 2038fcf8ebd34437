-- Which of some band rows are not there. Relies on the index on (bucket_hash, doc_id), which is asked for each.
SELECT DISTINCT asked.doc_id
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS asked (doc_id, bucket_hash)
WHERE NOT EXISTS (
    SELECT FROM {band} AS band
    WHERE band.bucket_hash = asked.bucket_hash AND band.doc_id = asked.doc_id OFFSET 0)
