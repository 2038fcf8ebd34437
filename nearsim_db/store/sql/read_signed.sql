-- How some documents are signed now. Relies on the leaf's key.
SELECT doc_id, feature_digest, revision, head_id FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
