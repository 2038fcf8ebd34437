-- Clusters on their way in: each document and the smallest doc_id of its cluster.
CREATE TEMP TABLE IF NOT EXISTS member (doc_id bigint, cluster_id bigint) ON COMMIT DELETE ROWS
