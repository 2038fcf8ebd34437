-- Pairs of documents that are heads no longer.
DELETE FROM {similar_pair}
WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
