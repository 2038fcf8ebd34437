-- The tables that generations share. Generations of small collections share all tables. Generations of large collections have
-- numbers from 100,000,000 on and have their own tables of signatures and bands; these have smaller keys, are loaded before
-- their indexes are created, and are dropped as a whole. All generations share the tables of pairs and of cluster members:
-- queries whose generation_id is not a constant, as in views, are then planned for few tables, however many large collections
-- there are. restore_shared creates the indexes of these two tables.
CREATE SEQUENCE nearsim.own_generation AS integer MINVALUE 100000000 START 100000001
    OWNED BY nearsim.generation.generation_id;

CREATE TABLE nearsim_index.signature_shared PARTITION OF nearsim.signature (PRIMARY KEY (generation_id, doc_id))
    FOR VALUES FROM (MINVALUE) TO (100000000);
CREATE INDEX ON nearsim_index.signature_shared (generation_id, feature_digest, doc_id) WHERE feature_digest IS NOT NULL;
CREATE INDEX ON nearsim_index.signature_shared (generation_id, head_id, doc_id) WHERE head_id <> doc_id;
CREATE INDEX ON nearsim_index.signature_shared (generation_id, head_id, doc_id);

CREATE TABLE nearsim_index.band_shared PARTITION OF nearsim.band FOR VALUES FROM (MINVALUE) TO (100000000);
CREATE UNIQUE INDEX band_shared_bucket ON nearsim_index.band_shared (generation_id, bucket_hash, doc_id);
ALTER TABLE nearsim_index.band_shared REPLICA IDENTITY USING INDEX band_shared_bucket;

CREATE TABLE nearsim_index.similar_pair_shared PARTITION OF nearsim.similar_pair FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
CREATE TABLE nearsim_index.cluster_member_shared PARTITION OF nearsim.cluster_member FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

COMMENT ON TABLE nearsim_index.signature_shared IS 'Signatures of the generations of small collections; see nearsim.generations';
COMMENT ON TABLE nearsim_index.band_shared IS 'Bands of the generations of small collections; see nearsim.generations';
COMMENT ON TABLE nearsim_index.similar_pair_shared IS 'Pairs of all generations; see nearsim.generations';
COMMENT ON TABLE nearsim_index.cluster_member_shared IS 'Cluster members of all generations; see nearsim.generations';
