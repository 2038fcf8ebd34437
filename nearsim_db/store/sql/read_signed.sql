-- The signatures that some documents have now, with the features they stand for.
SELECT doc_id, feature_digest FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
