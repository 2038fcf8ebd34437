CREATE TABLE nearsim.cluster_member (
    generation_id integer NOT NULL,
    doc_id bigint NOT NULL,
    cluster_id bigint NOT NULL,
    is_survivor boolean NOT NULL
) PARTITION BY RANGE (generation_id);

COMMENT ON TABLE nearsim.cluster_member IS
    'Members of clusters: documents connected by pairs, twins included, and the document to keep in each cluster';
COMMENT ON COLUMN nearsim.cluster_member.doc_id IS 'The document';
COMMENT ON COLUMN nearsim.cluster_member.cluster_id IS 'The cluster, identified by its smallest doc_id';
COMMENT ON COLUMN nearsim.cluster_member.is_survivor IS 'Whether it is the document to keep in its cluster';
