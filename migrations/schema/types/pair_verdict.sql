CREATE TYPE nearsim.pair_verdict AS (
    verdict_id bigint,
    collection_id integer,
    left_id bigint,
    right_id bigint,
    verdict text,
    by text,
    why text,
    at timestamptz,
    undone_by text,
    undone_why text,
    undone_at timestamptz,
    collection text,
    left_external_id text,
    right_external_id text,
    left_title text,
    right_title text
);

COMMENT ON TYPE nearsim.pair_verdict IS
    'Row of pin_pair, veto_pair and undo_verdict: the verdict with its collection and its documents';
