-- All members of the clusters that some documents are in. Relies on the leaf's key and on its index on cluster_id.
SELECT cluster_id, is_survivor, string_agg(int8send(doc_id), '') FROM {cluster_member}
WHERE cluster_id = ANY (ARRAY(
    SELECT cluster_id FROM {cluster_member} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))))
GROUP BY cluster_id, is_survivor
