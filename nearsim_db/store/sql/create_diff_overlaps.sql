-- How many documents each cluster of one generation shares with each of another; a cluster is NULL for documents that are
-- in none there.
CREATE TEMP TABLE diff_overlap ON COMMIT DROP AS
SELECT live.cluster_id AS live_cluster, new.cluster_id AS new_cluster, count(*) AS documents
FROM {live_member} AS live FULL JOIN {new_member} AS new USING (doc_id)
GROUP BY 1, 2;
CREATE INDEX ON diff_overlap (live_cluster);
CREATE INDEX ON diff_overlap (new_cluster);
ANALYZE diff_overlap
