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

COMMENT ON TYPE nearsim.pair_absence IS 'What why_not answers with';
COMMENT ON COLUMN nearsim.pair_absence.left_id IS 'doc_id of the left document, the smaller one';
COMMENT ON COLUMN nearsim.pair_absence.right_id IS 'doc_id of the right document';
COMMENT ON COLUMN nearsim.pair_absence.left_external_id IS 'external_id of the left document';
COMMENT ON COLUMN nearsim.pair_absence.right_external_id IS 'external_id of the right document';
COMMENT ON COLUMN nearsim.pair_absence.profile IS 'Name of the profile';
COMMENT ON COLUMN nearsim.pair_absence.generation_id IS 'The generation that answers for the profile';
COMMENT ON COLUMN nearsim.pair_absence.is_pair IS 'Whether the index has them as a pair after all';
COMMENT ON COLUMN nearsim.pair_absence.shared_bands IS 'How many bands of the two sketches are equal';
COMMENT ON COLUMN nearsim.pair_absence.estimate IS 'Similarity as estimated from the two sketches';
COMMENT ON COLUMN nearsim.pair_absence.probability IS 'How probable it was that this recipe would see a pair of that similarity';
COMMENT ON COLUMN nearsim.pair_absence.threshold IS
    'Similarity from which two documents are a pair; for projection the largest distance';
COMMENT ON COLUMN nearsim.pair_absence.min_shared_bands IS
    'How many bands two documents must share to be compared; 1 where the recipe has an amplification instead';
COMMENT ON COLUMN nearsim.pair_absence.verdict IS 'pinned or vetoed by a person; NULL for most';
COMMENT ON COLUMN nearsim.pair_absence.reason IS 'Why they are no pair, in plain words';
