CREATE TYPE nearsim.similar_document AS (
    doc_id bigint,
    external_id text,
    title text,
    similarity double precision,
    estimate real,
    shared_bands smallint,
    intersection_size integer,
    union_size integer,
    numbers_differ boolean,
    verdict text,
    verified boolean,
    distance double precision,
    left_in_right double precision,
    right_in_left double precision
);

COMMENT ON TYPE nearsim.similar_document IS 'Row of similar_to';
COMMENT ON COLUMN nearsim.similar_document.doc_id IS 'doc_id of the similar document';
COMMENT ON COLUMN nearsim.similar_document.external_id IS 'external_id of the similar document';
COMMENT ON COLUMN nearsim.similar_document.title IS 'Title';
COMMENT ON COLUMN nearsim.similar_document.similarity IS
    'Similarity; the sketches'' estimate if verified is false';
COMMENT ON COLUMN nearsim.similar_document.intersection_size IS
    'Number of features in both, of equal values of the sketches for a pair that is not verified; NULL for a candidate from the buckets, or if the metric does not count features';
COMMENT ON COLUMN nearsim.similar_document.union_size IS
    'Number of features in either, of values of a sketch for a pair that is not verified; NULL for a candidate from the buckets, or if the metric does not count features';
COMMENT ON COLUMN nearsim.similar_document.verified IS
    'Whether the similarity was verified on the features; false for a candidate from the buckets, and for a pair of a recipe that takes estimates';
COMMENT ON COLUMN nearsim.similar_document.distance IS
    'Distance, an estimate if verified is false; NULL for a candidate from the buckets, or if the metric is not a distance';
COMMENT ON COLUMN nearsim.similar_document.left_in_right IS
    'Share of the asked document''s features that the similar one has; NULL unless the metric is containment and the similarity verified';
COMMENT ON COLUMN nearsim.similar_document.right_in_left IS
    'Share of the similar document''s features that the asked one has; NULL unless the metric is containment and the similarity verified';
