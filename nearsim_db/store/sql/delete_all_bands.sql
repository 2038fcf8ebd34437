-- All band rows of some documents, whatever their keys are; returns in which buckets they were. Reads the whole table.
WITH gone AS (DELETE FROM {band} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING bucket_hash)
SELECT DISTINCT bucket_hash FROM gone
