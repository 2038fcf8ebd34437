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

COMMENT ON TYPE nearsim.similar_document IS 'Row of similar_to, nearest, contains and contained_in';
COMMENT ON COLUMN nearsim.similar_document.doc_id IS 'doc_id of the similar document';
COMMENT ON COLUMN nearsim.similar_document.external_id IS 'external_id of the similar document';
COMMENT ON COLUMN nearsim.similar_document.title IS 'Title of the similar document; NULL if it has none';
COMMENT ON COLUMN nearsim.similar_document.similarity IS
    'Similarity, or 1 / (1 + d) for a distance d; the sketches'' estimate if verified is false';
COMMENT ON COLUMN nearsim.similar_document.intersection_size IS
    'Number of features in both documents, or of equal values of the sketches for a pair that is not verified; NULL for other documents from the buckets, or if the metric does not count features';
COMMENT ON COLUMN nearsim.similar_document.union_size IS
    'Number of features in either document, or of values of a sketch for a pair that is not verified; NULL for other documents from the buckets, or if the metric does not count features';
COMMENT ON COLUMN nearsim.similar_document.verified IS
    'Whether the similarity was computed from the features; false for other documents from the buckets, and for pairs of a recipe that accepts estimates';
COMMENT ON COLUMN nearsim.similar_document.distance IS
    'Distance; an estimate if verified is false; NULL for other documents from the buckets, or if the metric is not a distance';
COMMENT ON COLUMN nearsim.similar_document.left_in_right IS
    'Fraction of the features of the requested document that the similar document has; NULL unless the metric is containment and the similarity is verified';
COMMENT ON COLUMN nearsim.similar_document.right_in_left IS
    'Fraction of the features of the similar document that the requested document has; NULL unless the metric is containment and the similarity is verified';
