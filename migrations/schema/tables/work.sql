CREATE TABLE nearsim.work (
    generation_id integer NOT NULL CONSTRAINT work_generation_fkey
        REFERENCES nearsim.generation ON DELETE CASCADE,
    doc_id bigint NOT NULL,
    stage text NOT NULL,
    queued_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    lease_id integer,
    again boolean NOT NULL DEFAULT false,
    attempts smallint NOT NULL DEFAULT 0,
    reached bigint NOT NULL DEFAULT 0,
    error text,
    set_aside_at timestamptz,
    CONSTRAINT work_pkey PRIMARY KEY (generation_id, stage, doc_id),
    CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'anchor', 'link', 'compare', 'tell'))
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX work_not_tried ON nearsim.work (generation_id, stage, doc_id) WHERE attempts = 0;
CREATE INDEX work_tried_before ON nearsim.work (generation_id, stage, attempts, doc_id)
    WHERE attempts > 0 AND set_aside_at IS NULL;
CREATE INDEX work_set_aside ON nearsim.work (generation_id, stage, doc_id) WHERE set_aside_at IS NOT NULL;

COMMENT ON TABLE nearsim.work IS
    'What a generation has still to sign, search or link: who is at it, since when, and what went wrong before';
COMMENT ON COLUMN nearsim.work.generation_id IS
    'The generation it is to be done for';
COMMENT ON COLUMN nearsim.work.doc_id IS
    'The document; 0 stands for all of the index';
COMMENT ON COLUMN nearsim.work.stage IS
    'sign, search (for pairs), anchor (through a whole bucket), link (clusters), compare (all documents) or tell (events of an index that went live)';
COMMENT ON COLUMN nearsim.work.queued_at IS
    'When it was queued';
COMMENT ON COLUMN nearsim.work.due_at IS
    'When it may begin';
COMMENT ON COLUMN nearsim.work.lease_id IS
    'Who is at it; NULL for nobody';
COMMENT ON COLUMN nearsim.work.again IS
    'Whether it was queued once more while somebody was at it';
COMMENT ON COLUMN nearsim.work.attempts IS
    'How often it has failed';
COMMENT ON COLUMN nearsim.work.reached IS
    'How far an anchor has gone through its buckets: the last doc_id';
COMMENT ON COLUMN nearsim.work.error IS
    'Why it failed last';
COMMENT ON COLUMN nearsim.work.set_aside_at IS
    'When it was given up until somebody looks';
