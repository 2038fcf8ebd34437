-- Clusters that became part of another have its cluster_id. Relies on the leaf's index on cluster_id.
UPDATE {cluster_member} AS member SET cluster_id = moved.new_id
FROM unnest(CAST(%(old_ids)s AS bigint[]), CAST(%(new_ids)s AS bigint[])) AS moved (old_id, new_id)
WHERE member.cluster_id = moved.old_id
