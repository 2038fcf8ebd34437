-- Texts that somebody asks about, and what workers found. Documents are named by number, so that what a reader may not
-- see, and what is purged, is not in an answer either.
CREATE TABLE nearsim.probe (
    probe_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT probe_pkey PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT probe_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    profile text,
    title text,
    body text,
    min_similarity double precision NOT NULL DEFAULT 0,
    asked_by text NOT NULL DEFAULT nearsim.caller(),
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deadline timestamptz NOT NULL DEFAULT clock_timestamp() + interval '5 seconds',
    answered_at timestamptz,
    error text,
    CONSTRAINT probe_deadline_near CHECK (deadline <= asked_at + interval '24 hours'),
    CONSTRAINT probe_moments_finite CHECK (isfinite(asked_at) AND isfinite(deadline)),
    CONSTRAINT probe_min_similarity_possible CHECK (min_similarity BETWEEN 0 AND 1),
    CONSTRAINT probe_error_answers CHECK (error IS NULL OR answered_at IS NOT NULL)
);
CREATE INDEX probe_waiting ON nearsim.probe (deadline) WHERE answered_at IS NULL;
CREATE INDEX probe_age ON nearsim.probe (deadline);

COMMENT ON TABLE nearsim.probe IS
    'Texts that applications ask about; a worker answers each before its deadline and removes it an hour after that';
COMMENT ON COLUMN nearsim.probe.probe_id IS 'The number by which the answer is asked for';
COMMENT ON COLUMN nearsim.probe.collection_id IS 'The collection whose documents the text is compared with';
COMMENT ON COLUMN nearsim.probe.profile IS 'The profile that answers; may be left out where the collection has one, or one called default';
COMMENT ON COLUMN nearsim.probe.title IS 'The title of the text, for profiles whose fields have it';
COMMENT ON COLUMN nearsim.probe.body IS 'The text';
COMMENT ON COLUMN nearsim.probe.min_similarity IS 'What is less similar is left out of the answer';
COMMENT ON COLUMN nearsim.probe.asked_by IS 'The role that asked';
COMMENT ON COLUMN nearsim.probe.asked_at IS 'When it was asked';
COMMENT ON COLUMN nearsim.probe.deadline IS 'Nobody waits for the answer any longer; at most 24 hours after asked_at';
COMMENT ON COLUMN nearsim.probe.answered_at IS 'When a worker answered; NULL while none has';
COMMENT ON COLUMN nearsim.probe.error IS 'Why there is no answer, where the worker could not give one';
