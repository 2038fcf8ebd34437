-- Verdicts of people on pairs of documents. A verdict belongs to documents, not to an index, and outlives both, so it has no
-- foreign keys to them.
CREATE TABLE nearsim.verdict (
    verdict_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT verdict_pkey PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT verdict_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    left_id bigint NOT NULL,
    right_id bigint NOT NULL,
    verdict text NOT NULL,
    by text NOT NULL,
    why text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    undone_by text,
    undone_why text,
    undone_at timestamptz,
    -- The foreign keys of nearsim.review refer to this.
    CONSTRAINT verdict_pair_key UNIQUE (left_id, right_id, collection_id, verdict_id),
    CONSTRAINT verdict_ordered CHECK (left_id < right_id),
    CONSTRAINT verdict_known CHECK (verdict IN ('pinned', 'vetoed')),
    CONSTRAINT verdict_explained CHECK (btrim(why) <> '' AND btrim(by) <> ''),
    CONSTRAINT verdict_undone_whole CHECK
        ((undone_at IS NULL) = (undone_by IS NULL) AND (undone_at IS NULL) = (undone_why IS NULL))
);
CREATE UNIQUE INDEX verdict_one_current ON nearsim.verdict (left_id, right_id) WHERE undone_at IS NULL;
CREATE INDEX verdict_right ON nearsim.verdict (right_id);
CREATE INDEX verdict_collection ON nearsim.verdict (collection_id, verdict);

COMMENT ON TABLE nearsim.verdict IS
    'Pairs of documents that a person pinned (always in one cluster) or vetoed (never in one cluster), with author, reason and undo';
COMMENT ON COLUMN nearsim.verdict.collection_id IS 'The collection of both documents';
COMMENT ON COLUMN nearsim.verdict.right_id IS 'doc_id of the right document, the larger of the two';
COMMENT ON COLUMN nearsim.verdict.verdict IS 'pinned: always in one cluster; vetoed: never in one cluster';
COMMENT ON COLUMN nearsim.verdict.at IS 'When it was set';
