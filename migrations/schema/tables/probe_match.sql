CREATE TABLE nearsim.probe_match (
    probe_id bigint NOT NULL CONSTRAINT probe_match_probe_fkey REFERENCES nearsim.probe ON DELETE CASCADE,
    doc_id bigint NOT NULL,
    similarity double precision NOT NULL,
    estimate real NOT NULL,
    shared_bands smallint NOT NULL,
    intersection_size integer,
    union_size integer,
    distance double precision,
    verified boolean NOT NULL,
    CONSTRAINT probe_match_pkey PRIMARY KEY (probe_id, doc_id)
);

COMMENT ON TABLE nearsim.probe_match IS
    'Answers to lookup requests: the documents, twins included, that the text would be paired with if it were added';
COMMENT ON COLUMN nearsim.probe_match.probe_id IS 'The lookup request';
COMMENT ON COLUMN nearsim.probe_match.doc_id IS 'The matching document; it may have been deleted since';
COMMENT ON COLUMN nearsim.probe_match.similarity IS 'Similarity, or 1 / (1 + d) for a distance d; an estimate if verified is false';
COMMENT ON COLUMN nearsim.probe_match.intersection_size IS
    'Number of features in both texts, or of equal values of the sketches if verified is false; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.probe_match.union_size IS
    'Number of features in either text, or of values of a sketch if verified is false; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.probe_match.distance IS
    'Distance, an estimate if verified is false; NULL if the metric is not a distance';
COMMENT ON COLUMN nearsim.probe_match.verified IS
    'Whether the similarity was computed from the features; false if it is an estimate from the sketches (match.verify of the recipe decides)';
