CREATE TABLE nearsim.cluster_member (
    generation_id integer NOT NULL,
    doc_id bigint NOT NULL,
    cluster_id bigint NOT NULL,
    is_survivor boolean NOT NULL
) PARTITION BY LIST (generation_id);

COMMENT ON TABLE nearsim.cluster_member IS
    'Documents tied together by pairs, twins included, and which one of each cluster survives';
COMMENT ON COLUMN nearsim.cluster_member.generation_id IS
    'The generation';
COMMENT ON COLUMN nearsim.cluster_member.doc_id IS
    'The document';
COMMENT ON COLUMN nearsim.cluster_member.cluster_id IS
    'The cluster: the smallest doc_id that it was linked with';
COMMENT ON COLUMN nearsim.cluster_member.is_survivor IS
    'Whether it is the one of its cluster to keep';
