-- A random sample of heads: digests are as good as random numbers. Relies on the index on feature_digest.
SELECT doc_id, sketch FROM {signature} WHERE feature_digest IS NOT NULL AND head_id = doc_id
ORDER BY feature_digest LIMIT %(size)s
