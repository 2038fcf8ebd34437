-- Exactly the band rows of these heads, found by their recomputed keys. Relies on the index on (bucket_hash, doc_id).
DELETE FROM {band} AS band
USING unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS gone (doc_id, bucket_hash)
WHERE band.bucket_hash = gone.bucket_hash AND band.doc_id = gone.doc_id
