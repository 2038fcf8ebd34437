-- Those of some documents that are heads, with their digests; they stay it until commit. Locked in the order of doc_id.
-- Relies on the leaf's key.
SELECT doc_id, feature_digest FROM {signature}
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id = doc_id
ORDER BY doc_id FOR KEY SHARE
