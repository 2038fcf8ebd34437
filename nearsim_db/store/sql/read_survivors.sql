-- The survivors of some clusters. Relies on the leaf's index on (cluster_id, is_survivor).
SELECT cluster_id, is_survivor, int8send(doc_id) FROM {cluster_member}
WHERE cluster_id = ANY(CAST(%(cluster_ids)s AS bigint[])) AND is_survivor
