CREATE TABLE nearsim.probe_match (
    probe_id bigint NOT NULL CONSTRAINT probe_match_probe_fkey REFERENCES nearsim.probe ON DELETE CASCADE,
    doc_id bigint NOT NULL,
    similarity double precision NOT NULL,
    estimate real NOT NULL,
    shared_bands smallint NOT NULL,
    intersection_size integer,
    union_size integer,
    distance double precision,
    CONSTRAINT probe_match_pkey PRIMARY KEY (probe_id, doc_id)
);

COMMENT ON TABLE nearsim.probe_match IS
    'The documents that the text of a probe would be paired with if it were added, twins expanded';
COMMENT ON COLUMN nearsim.probe_match.probe_id IS 'The probe that is answered';
COMMENT ON COLUMN nearsim.probe_match.doc_id IS 'The document found; it may be gone since';
COMMENT ON COLUMN nearsim.probe_match.similarity IS
    'Verified similarity; of a distance d it is 1 / (1 + d)';
COMMENT ON COLUMN nearsim.probe_match.estimate IS 'What the two sketches alone say of the similarity';
COMMENT ON COLUMN nearsim.probe_match.shared_bands IS 'How many bands of the two sketches are equal';
COMMENT ON COLUMN nearsim.probe_match.intersection_size IS
    'How many distinct features the two texts share; NULL where the metric counts none';
COMMENT ON COLUMN nearsim.probe_match.union_size IS
    'How many distinct features they have together; NULL where the metric counts none';
COMMENT ON COLUMN nearsim.probe_match.distance IS
    'Verified distance; NULL where the metric measures none';
