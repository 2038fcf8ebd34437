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
    reason text
);

COMMENT ON TYPE nearsim.pair_absence IS 'Row of why_not';
COMMENT ON COLUMN nearsim.pair_absence.left_id IS 'doc_id of the left document, the smaller one';
COMMENT ON COLUMN nearsim.pair_absence.right_id IS 'doc_id of the right document';
COMMENT ON COLUMN nearsim.pair_absence.left_external_id IS 'external_id of the left document';
COMMENT ON COLUMN nearsim.pair_absence.right_external_id IS 'external_id of the right document';
COMMENT ON COLUMN nearsim.pair_absence.profile IS 'Name of the profile';
COMMENT ON COLUMN nearsim.pair_absence.generation_id IS 'The live generation of the profile';
COMMENT ON COLUMN nearsim.pair_absence.is_pair IS 'Whether they are a pair';
COMMENT ON COLUMN nearsim.pair_absence.shared_bands IS 'Number of equal bands of the two sketches';
COMMENT ON COLUMN nearsim.pair_absence.estimate IS 'Similarity estimated from the two sketches';
COMMENT ON COLUMN nearsim.pair_absence.probability IS
    'Probability that this recipe finds a pair of the estimated similarity';
COMMENT ON COLUMN nearsim.pair_absence.threshold IS 'Minimum similarity of a pair; for projection the maximum distance';
COMMENT ON COLUMN nearsim.pair_absence.min_shared_bands IS
    'Number of bands that candidates must share; 1 if the recipe has an amplification instead';
COMMENT ON COLUMN nearsim.pair_absence.verdict IS 'pinned or vetoed by a person; NULL if neither';
COMMENT ON COLUMN nearsim.pair_absence.reason IS 'Why they are not a pair';
