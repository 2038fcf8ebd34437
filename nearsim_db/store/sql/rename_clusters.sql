-- The first member that stays gives its name to a cluster that had that of a document which was struck out.
UPDATE {cluster_member} AS member SET cluster_id = first.doc_id
FROM (
    SELECT cluster_id, min(doc_id) AS doc_id FROM {cluster_member}
    WHERE cluster_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY cluster_id
) AS first
WHERE member.cluster_id = first.cluster_id
