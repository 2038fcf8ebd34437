-- The heads of some digests. Relies on the index on feature_digest.
SELECT doc_id, sketch, feature_digest FROM {signature}
WHERE feature_digest = ANY(CAST(%(digests)s AS uuid[])) AND head_id = doc_id
