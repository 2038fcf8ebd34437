-- What verification needs of some documents. Relies on the leaf's key.
SELECT doc_id, sketch, feature_digest FROM {signature}
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id = doc_id
ORDER BY doc_id
