CREATE TYPE nearsim.pair_evidence AS (
    left_id bigint,
    right_id bigint,
    left_external_id text,
    right_external_id text,
    profile text,
    generation_id integer,
    is_pair boolean,
    are_twins boolean,
    similarity double precision,
    estimate real,
    intersection_size integer,
    union_size integer,
    shared_bands smallint,
    bands smallint[],
    numbers_differ boolean,
    numbers_only_left text[],
    numbers_only_right text[],
    verified_at timestamptz,
    threshold double precision,
    recipe jsonb,
    verdict text,
    verdict_by text,
    verdict_why text,
    same_cluster boolean,
    distance double precision,
    verified boolean,
    collection text,
    left_title text,
    right_title text,
    signature_intersection integer,
    signature_union integer
);

COMMENT ON TYPE nearsim.pair_evidence IS 'Row of why';
COMMENT ON COLUMN nearsim.pair_evidence.left_id IS 'doc_id of the left document, the smaller of the two';
COMMENT ON COLUMN nearsim.pair_evidence.generation_id IS 'The live generation of the profile';
COMMENT ON COLUMN nearsim.pair_evidence.is_pair IS 'Whether the documents are a pair; if they are not, why_not() gives the reason';
COMMENT ON COLUMN nearsim.pair_evidence.similarity IS
    'Similarity, or 1 / (1 + d) for a distance d; an estimate if verified is false; NULL if the documents are not a pair (the command nearsim why computes it)';
COMMENT ON COLUMN nearsim.pair_evidence.intersection_size IS
    'Number of features in both documents, or of equal values of the sketches if verified is false; NULL if the documents are not a pair or the metric does not count features';
COMMENT ON COLUMN nearsim.pair_evidence.union_size IS
    'Number of features in either document, or of values of a sketch if verified is false; NULL if the documents are not a pair or the metric does not count features';
COMMENT ON COLUMN nearsim.pair_evidence.bands IS 'Numbers, from 0, of the bands in which the sketches are equal';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_differ IS 'Whether the runs of digits in the two texts differ';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_only_left IS
    'Runs of digits that only the left text has, with repetitions; NULL while a text is newer than the index, and if normalise.html is main';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_only_right IS
    'Runs of digits that only the right text has, with repetitions; NULL while a text is newer than the index, and if normalise.html is main';
COMMENT ON COLUMN nearsim.pair_evidence.verified_at IS 'When the similarity was computed; NULL for twins';
COMMENT ON COLUMN nearsim.pair_evidence.verdict_by IS 'Author of the verdict; NULL if there is none';
COMMENT ON COLUMN nearsim.pair_evidence.verdict_why IS 'Reason of the verdict; NULL if there is none';
COMMENT ON COLUMN nearsim.pair_evidence.same_cluster IS 'Whether both are in the same cluster';
COMMENT ON COLUMN nearsim.pair_evidence.distance IS
    'Distance; an estimate if verified is false; NULL if the documents are not a pair or the metric is not a distance';
COMMENT ON COLUMN nearsim.pair_evidence.verified IS
    'Whether the similarity was computed from the features; false if it is an estimate from the sketches; NULL if the documents are not a pair';
COMMENT ON COLUMN nearsim.pair_evidence.signature_intersection IS
    'Number of positions in which the two sketches have the same value; NULL unless the family is fast_similarity or minhash';
COMMENT ON COLUMN nearsim.pair_evidence.signature_union IS
    'Number of values of either sketch, a value that both have in a position counted once; NULL unless the family is fast_similarity or minhash';
