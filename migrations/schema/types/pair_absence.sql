CREATE TYPE nearsim.pair_absence AS (
    left_id bigint,
    right_id bigint,
    left_external_id text,
    right_external_id text,
    profile text,
    generation_id integer,
    is_pair boolean,
    shared_bands smallint,
    estimate real,
    probability double precision,
    threshold double precision,
    min_shared_bands integer,
    verdict text,
    reason text,
    collection text,
    left_title text,
    right_title text
);

COMMENT ON TYPE nearsim.pair_absence IS 'Row of why_not';
COMMENT ON COLUMN nearsim.pair_absence.left_id IS 'doc_id of the left document, the smaller of the two';
COMMENT ON COLUMN nearsim.pair_absence.generation_id IS 'The live generation of the profile';
COMMENT ON COLUMN nearsim.pair_absence.is_pair IS 'Whether the documents are a pair';
COMMENT ON COLUMN nearsim.pair_absence.probability IS
    'Probability that this recipe finds a pair of the estimated similarity';
COMMENT ON COLUMN nearsim.pair_absence.reason IS 'Why the documents are not a pair, as a sentence';
COMMENT ON COLUMN nearsim.pair_absence.collection IS 'Name of the collection; NULL if the documents are in different collections';
