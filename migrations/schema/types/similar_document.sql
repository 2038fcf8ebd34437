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
    distance double precision
);

COMMENT ON TYPE nearsim.similar_document IS 'What similar_to answers with';
COMMENT ON COLUMN nearsim.similar_document.doc_id IS 'Number of the similar document';
COMMENT ON COLUMN nearsim.similar_document.external_id IS 'Its external_id';
COMMENT ON COLUMN nearsim.similar_document.title IS 'Its title';
COMMENT ON COLUMN nearsim.similar_document.similarity IS 'Verified similarity; the estimate of the sketches where verified is false';
COMMENT ON COLUMN nearsim.similar_document.estimate IS 'Similarity as estimated from the two sketches';
COMMENT ON COLUMN nearsim.similar_document.shared_bands IS 'How many bands of the two sketches are equal';
COMMENT ON COLUMN nearsim.similar_document.intersection_size IS
    'How many features both have; NULL where verified is false, or the metric counts none';
COMMENT ON COLUMN nearsim.similar_document.union_size IS
    'How many features either has; NULL where verified is false, or the metric counts none';
COMMENT ON COLUMN nearsim.similar_document.numbers_differ IS 'Whether the runs of digits in their texts differ: alike, but with other figures or dates';
COMMENT ON COLUMN nearsim.similar_document.verdict IS 'pinned or vetoed by a person; NULL for most';
COMMENT ON COLUMN nearsim.similar_document.verified IS 'Whether it is a pair of the index; false for what only the buckets gave';
COMMENT ON COLUMN nearsim.similar_document.distance IS
    'Verified distance; NULL where verified is false, or the metric measures none';
