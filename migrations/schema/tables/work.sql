-- Waiting work has a row for each document; work under a lease has a row for each batch, because updating and deleting a row
-- for each document would cost some 500 bytes of write-ahead log. If a batch fails or its lease ends, each document gets its
-- own row again.
CREATE TABLE nearsim.work (
    generation_id integer NOT NULL CONSTRAINT work_generation_fkey
        REFERENCES nearsim.generation ON DELETE CASCADE,
    doc_id bigint NOT NULL,
    stage text NOT NULL,
    queued_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    lease_id integer,
    attempts smallint NOT NULL DEFAULT 0,
    reached bigint NOT NULL DEFAULT 0,
    error text,
    set_aside_at timestamptz,
    doc_ids bigint[],
    lost_lease_id integer,
    CONSTRAINT work_pkey PRIMARY KEY (generation_id, stage, doc_id),
    CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'anchor', 'link', 'compare')),
    CONSTRAINT work_batch_leased CHECK (doc_id >= 0 AND doc_ids IS NULL AND lease_id IS NULL
        OR doc_id < 0 AND doc_ids IS NOT NULL AND lease_id IS NOT NULL)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
-- Work that is put under a lease when it is queued never enters this index.
CREATE INDEX work_free ON nearsim.work (generation_id, stage, doc_id) WHERE attempts = 0 AND lease_id IS NULL;
CREATE INDEX work_tried_before ON nearsim.work (generation_id, stage, attempts, doc_id)
    WHERE attempts > 0 AND set_aside_at IS NULL;
CREATE INDEX work_set_aside ON nearsim.work (generation_id, stage, doc_id) WHERE set_aside_at IS NOT NULL;

COMMENT ON TABLE nearsim.work IS 'Work queue of a generation: sign, search and link, with leases, retries and errors';
COMMENT ON COLUMN nearsim.work.doc_id IS 'The document; 0 for the whole index, and a random negative number for a batch';
COMMENT ON COLUMN nearsim.work.stage IS
    'sign, search (for pairs), anchor (search a whole bucket), link (update clusters) or compare (the index with all documents)';
COMMENT ON COLUMN nearsim.work.lease_id IS 'The lease under which it is processed; NULL while it waits';
COMMENT ON COLUMN nearsim.work.reached IS 'Progress of the stage anchor: the last doc_id that was searched in the buckets';
COMMENT ON COLUMN nearsim.work.error IS 'Error of the last failed attempt';
COMMENT ON COLUMN nearsim.work.set_aside_at IS 'When it was set aside, after its last attempt, for a person to look at';
COMMENT ON COLUMN nearsim.work.doc_ids IS
    'The documents of a batch that a worker processes; NULL for work that waits';
COMMENT ON COLUMN nearsim.work.lost_lease_id IS
    'The lease whose loss was counted as the last attempt; if its process is still alive, it takes the count back. NULL if no loss was counted';
