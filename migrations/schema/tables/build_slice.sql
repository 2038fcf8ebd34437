-- A process holds the row lock of a slice while it works on it, in the transaction that stores its results: if the process
-- dies, the slice is free again and has stored nothing.
CREATE TABLE nearsim_index.build_slice (
    generation_id integer NOT NULL CONSTRAINT build_slice_generation_fkey
        REFERENCES nearsim.generation ON DELETE CASCADE,
    stage text NOT NULL,
    slice_no integer NOT NULL,
    low bigint NOT NULL,
    high bigint NOT NULL,
    documents bigint NOT NULL,
    done boolean NOT NULL DEFAULT false,
    counts jsonb NOT NULL DEFAULT '{}',
    full_buckets bigint[] NOT NULL DEFAULT '{}',
    last_anchors bigint[] NOT NULL DEFAULT '{}',
    CONSTRAINT build_slice_pkey PRIMARY KEY (generation_id, stage, slice_no),
    CONSTRAINT build_slice_stage_known CHECK (stage IN ('sign', 'bands', 'pairs'))
);

COMMENT ON TABLE nearsim_index.build_slice IS
    'Slices of a running build, which any number of processes take; deleted when the build is done';
COMMENT ON COLUMN nearsim_index.build_slice.stage IS 'sign (a range of documents), bands (of heads, on a Citus cluster) or pairs (of buckets)';
COMMENT ON COLUMN nearsim_index.build_slice.slice_no IS 'Number of the slice in its stage, from 0, in the order of the ranges';
COMMENT ON COLUMN nearsim_index.build_slice.low IS 'First doc_id or bucket_hash';
COMMENT ON COLUMN nearsim_index.build_slice.high IS 'Last doc_id or bucket_hash';
COMMENT ON COLUMN nearsim_index.build_slice.documents IS 'Documents to sign, heads, or this slice''s share of the heads';
COMMENT ON COLUMN nearsim_index.build_slice.done IS 'Whether it is done';
COMMENT ON COLUMN nearsim_index.build_slice.counts IS 'What was counted in it';
COMMENT ON COLUMN nearsim_index.build_slice.full_buckets IS 'Buckets over the limit in this range';
COMMENT ON COLUMN nearsim_index.build_slice.last_anchors IS 'The last anchor of each';
