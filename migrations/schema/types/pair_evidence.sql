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
    distance double precision
);

COMMENT ON TYPE nearsim.pair_evidence IS 'What why answers with';
COMMENT ON COLUMN nearsim.pair_evidence.left_id IS 'doc_id of the left document, the smaller one';
COMMENT ON COLUMN nearsim.pair_evidence.right_id IS 'doc_id of the right document';
COMMENT ON COLUMN nearsim.pair_evidence.left_external_id IS 'external_id of the left document';
COMMENT ON COLUMN nearsim.pair_evidence.right_external_id IS 'external_id of the right document';
COMMENT ON COLUMN nearsim.pair_evidence.profile IS 'Name of the profile';
COMMENT ON COLUMN nearsim.pair_evidence.generation_id IS 'The generation that answers for the profile';
COMMENT ON COLUMN nearsim.pair_evidence.is_pair IS 'Whether the index has them as a pair; where not, ask why_not';
COMMENT ON COLUMN nearsim.pair_evidence.are_twins IS 'Whether their features are equal';
COMMENT ON COLUMN nearsim.pair_evidence.similarity IS
    'Verified similarity (1 / (1 + distance) where the metric measures one); NULL where they are no pair';
COMMENT ON COLUMN nearsim.pair_evidence.estimate IS 'Similarity as estimated from the two sketches';
COMMENT ON COLUMN nearsim.pair_evidence.intersection_size IS
    'How many features both have; NULL where they are no pair, or the metric counts none';
COMMENT ON COLUMN nearsim.pair_evidence.union_size IS
    'How many features either has; NULL where they are no pair, or the metric counts none';
COMMENT ON COLUMN nearsim.pair_evidence.shared_bands IS 'How many bands of the two sketches are equal';
COMMENT ON COLUMN nearsim.pair_evidence.bands IS 'Which bands, from 0';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_differ IS 'Whether the runs of digits in their texts differ';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_only_left IS 'Runs of digits that the right text lacks, as often as it lacks them; NULL while a text is newer than the index';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_only_right IS 'Runs of digits that the left text lacks, as often as it lacks them; NULL while a text is newer than the index';
COMMENT ON COLUMN nearsim.pair_evidence.verified_at IS 'When the similarity was computed; NULL for twins';
COMMENT ON COLUMN nearsim.pair_evidence.threshold IS
    'Similarity from which two documents are a pair; for projection the largest distance';
COMMENT ON COLUMN nearsim.pair_evidence.recipe IS 'The whole recipe, every default spelled out';
COMMENT ON COLUMN nearsim.pair_evidence.verdict IS 'pinned or vetoed by a person; NULL for most';
COMMENT ON COLUMN nearsim.pair_evidence.verdict_by IS 'Who decided so';
COMMENT ON COLUMN nearsim.pair_evidence.verdict_why IS 'Their reason';
COMMENT ON COLUMN nearsim.pair_evidence.same_cluster IS 'Whether both are in one cluster';
COMMENT ON COLUMN nearsim.pair_evidence.distance IS
    'Verified distance; NULL where they are no pair, or the metric measures none';
