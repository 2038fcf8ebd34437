-- The heads of some digests. Relies on the index on feature_digest.
SELECT doc_id, feature_digest, sketch FROM {signature}
WHERE feature_digest = ANY(CAST(%(digests)s AS uuid[])) AND head_id = doc_id
