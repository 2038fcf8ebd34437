-- Lookup requests. The answers consist of doc_ids, so they never show a document that the reader may not see or that was
-- purged.
CREATE TABLE nearsim.probe (
    probe_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT probe_pkey PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT probe_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    profile text,
    title text,
    body text,
    min_similarity double precision NOT NULL DEFAULT 0,
    max_matches integer,
    asked_by text NOT NULL DEFAULT current_user,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deadline timestamptz NOT NULL DEFAULT clock_timestamp() + interval '5 seconds',
    answered_at timestamptz,
    error text,
    external_id text,
    purpose text,
    generation_id integer,
    bucket_hashes bigint[],
    snapshot text,
    CONSTRAINT probe_deadline_near CHECK (deadline <= asked_at + interval '24 hours'),
    CONSTRAINT probe_moments_finite CHECK (isfinite(asked_at) AND isfinite(deadline)),
    CONSTRAINT probe_min_similarity_possible CHECK (min_similarity BETWEEN 0 AND 1),
    CONSTRAINT probe_purpose_known CHECK (purpose IN ('lock', 'locked', 'insert')),
    CONSTRAINT probe_max_matches_positive CHECK (max_matches > 0),
    CONSTRAINT probe_error_answers CHECK (error IS NULL OR answered_at IS NOT NULL)
);
CREATE INDEX probe_waiting ON nearsim.probe (deadline) WHERE answered_at IS NULL;
CREATE INDEX probe_age ON nearsim.probe (deadline);

COMMENT ON TABLE nearsim.probe IS
    'Lookup requests of applications; a worker answers each request before its deadline, and deletes it an hour after the deadline';
COMMENT ON COLUMN nearsim.probe.probe_id IS 'Number of the request, an argument of similar_to_text';
COMMENT ON COLUMN nearsim.probe.collection_id IS 'The collection to search';
COMMENT ON COLUMN nearsim.probe.profile IS
    'The profile to search; optional if the collection has one profile, or one named default';
COMMENT ON COLUMN nearsim.probe.title IS 'Title, for profiles whose fields include it';
COMMENT ON COLUMN nearsim.probe.body IS 'Text';
COMMENT ON COLUMN nearsim.probe.min_similarity IS 'Minimum similarity of the documents in the answer';
COMMENT ON COLUMN nearsim.probe.max_matches IS
    'Maximum number of documents in the answer, which are those with the best estimates; NULL for all';
COMMENT ON COLUMN nearsim.probe.asked_by IS 'The requesting role';
COMMENT ON COLUMN nearsim.probe.asked_at IS 'When it was requested';
COMMENT ON COLUMN nearsim.probe.deadline IS 'When the request expires; at most 24 hours after asked_at';
COMMENT ON COLUMN nearsim.probe.answered_at IS 'When a worker answered; NULL until then';
COMMENT ON COLUMN nearsim.probe.error IS 'Why the request failed; NULL if it did not';
COMMENT ON COLUMN nearsim.probe.external_id IS 'external_id of the document whose text this is; the answer leaves this document out';
COMMENT ON COLUMN nearsim.probe.purpose IS
    'lock: the answer includes bucket_hashes. insert, or locked if the caller already holds the locks: the answer also takes into account all documents that were committed before it. NULL: neither';
COMMENT ON COLUMN nearsim.probe.generation_id IS
    'The generation to whose buckets bucket_hashes belong; NULL if purpose is NULL, or if the collection has no index';
COMMENT ON COLUMN nearsim.probe.bucket_hashes IS
    'Buckets of the text, which a transaction locks before it inserts the text, because near-duplicates have a bucket in common; NULL if purpose is NULL';
COMMENT ON COLUMN nearsim.probe.snapshot IS
    'The transactions whose documents the answer takes into account, as pg_snapshot; NULL unless the purpose is insert';
