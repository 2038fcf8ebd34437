-- Documents that are new in a cluster, in another, or survive it no longer or from now on. Relies on the leaf's key.
INSERT INTO {cluster_member} (doc_id, cluster_id, is_survivor)
SELECT doc_id, cluster_id, survives = 1
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(cluster_ids)s AS bigint[]), CAST(%(survives)s AS smallint[]))
    AS written (doc_id, cluster_id, survives)
ON CONFLICT (doc_id) DO UPDATE SET cluster_id = excluded.cluster_id, is_survivor = excluded.is_survivor
