-- The cluster of each of some documents. Relies on the leaf's key.
SELECT cluster_id, is_survivor, string_agg(int8send(doc_id), '') FROM {cluster_member}
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
GROUP BY cluster_id, is_survivor
