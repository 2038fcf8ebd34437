-- A generation's own tables go.
DROP TABLE IF EXISTS {cluster_member}, {similar_pair}, {band}, {signature}
