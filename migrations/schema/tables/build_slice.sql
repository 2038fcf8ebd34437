-- While a process works on a slice, it holds the lock of the slice's row, in the same transaction that stores the results. If
-- the process dies, the slice is free again and nothing of it has been stored.
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
    'Slices of a running build, on which any number of processes can work; deleted when the build is done';
COMMENT ON COLUMN nearsim_index.build_slice.stage IS 'sign (a range of documents), bands (of heads, on a Citus cluster) or pairs (of buckets)';
COMMENT ON COLUMN nearsim_index.build_slice.slice_no IS 'Number of the slice in its stage, from 0, in the order of the ranges';
COMMENT ON COLUMN nearsim_index.build_slice.low IS 'First doc_id or bucket_hash';
COMMENT ON COLUMN nearsim_index.build_slice.high IS 'Last doc_id or bucket_hash';
COMMENT ON COLUMN nearsim_index.build_slice.documents IS 'Number of documents to sign (sign), of heads in the range (bands), or this slice''s share of all heads (pairs)';
COMMENT ON COLUMN nearsim_index.build_slice.done IS 'Whether it is done';
COMMENT ON COLUMN nearsim_index.build_slice.counts IS 'Counts of the work that was done in it';
COMMENT ON COLUMN nearsim_index.build_slice.full_buckets IS 'Buckets in this range that exceed the bucket limit';
COMMENT ON COLUMN nearsim_index.build_slice.last_anchors IS 'The last anchor of each of the full_buckets, in the same order';
