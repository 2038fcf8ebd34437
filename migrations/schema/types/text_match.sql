CREATE TYPE nearsim.text_match AS (
    doc_id bigint,
    external_id text,
    title text,
    similarity double precision,
    estimate real,
    shared_bands smallint,
    intersection_size integer,
    union_size integer,
    distance double precision,
    verified boolean
);

COMMENT ON TYPE nearsim.text_match IS
    'Row of similar_to_text, check_text and check_insert: a document that a text would be paired with';
COMMENT ON COLUMN nearsim.text_match.doc_id IS 'doc_id of the matching document';
COMMENT ON COLUMN nearsim.text_match.external_id IS 'external_id of the matching document';
COMMENT ON COLUMN nearsim.text_match.title IS 'Title of the matching document; NULL if it has none';
COMMENT ON COLUMN nearsim.text_match.similarity IS 'Similarity, or 1 / (1 + d) for a distance d; the sketches'' estimate if verified is false';
COMMENT ON COLUMN nearsim.text_match.intersection_size IS
    'Number of features in both texts; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.text_match.union_size IS
    'Number of features in either text; NULL if the metric does not count features';
COMMENT ON COLUMN nearsim.text_match.distance IS 'Distance; NULL if the metric is not a distance';
COMMENT ON COLUMN nearsim.text_match.verified IS
    'Whether the similarity was computed from the features; false if it is an estimate from the sketches (match.verify of the recipe decides)';
