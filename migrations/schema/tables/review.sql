-- Pairs that reviewers were shown at the review desk, and their answers. Rows belong to documents, not to an index, and outlive
-- both: no foreign keys to them. Writers can insert any values, so the foreign keys let a row name only verdicts and choices
-- about its documents, which undo relies on.
CREATE TABLE nearsim.review (
    review_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT review_pkey PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT review_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    reviewer text NOT NULL DEFAULT current_user,
    by text NOT NULL,
    queue text NOT NULL,
    left_id bigint NOT NULL,
    right_id bigint NOT NULL,
    leased_until timestamptz,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    answer text,
    why text,
    decided_at timestamptz,
    decision_id bigint,
    verdict_id bigint,
    replaced_id bigint,
    pin_id bigint,
    undone_at timestamptz,
    probability double precision,
    CONSTRAINT review_ordered CHECK (left_id <= right_id),
    CONSTRAINT review_verdict_fkey FOREIGN KEY (left_id, right_id, collection_id, verdict_id)
        REFERENCES nearsim.verdict (left_id, right_id, collection_id, verdict_id),
    CONSTRAINT review_replaced_fkey FOREIGN KEY (left_id, right_id, collection_id, replaced_id)
        REFERENCES nearsim.verdict (left_id, right_id, collection_id, verdict_id),
    CONSTRAINT review_pin_fkey FOREIGN KEY (left_id, pin_id, collection_id)
        REFERENCES nearsim.survivor_pin (doc_id, pin_id, collection_id),
    CONSTRAINT review_by_somebody CHECK (btrim(by) <> ''),
    CONSTRAINT review_answer_known CHECK (answer IN ('same', 'different', 'unsure', 'skipped', 'kept')),
    CONSTRAINT review_decided_whole CHECK ((answer IS NULL) = (decided_at IS NULL)),
    CONSTRAINT review_verdict_decided CHECK (verdict_id IS NULL OR answer IN ('same', 'different')),
    CONSTRAINT review_pin_decided CHECK ((pin_id IS NOT NULL) = (answer IS NOT DISTINCT FROM 'kept')),
    CONSTRAINT review_undone_decided CHECK (undone_at IS NULL OR decided_at IS NOT NULL),
    CONSTRAINT review_lease_open CHECK (leased_until IS NULL OR decided_at IS NULL),
    CONSTRAINT review_probability_possible CHECK (probability > 0 AND probability <= 1)
);
CREATE UNIQUE INDEX review_one_lease ON nearsim.review (collection_id, left_id, right_id) WHERE leased_until IS NOT NULL;
CREATE INDEX review_pair ON nearsim.review (left_id, right_id);
CREATE INDEX review_right ON nearsim.review (right_id);
CREATE INDEX review_decisions ON nearsim.review (collection_id, reviewer, by, decided_at) WHERE decided_at IS NOT NULL;

COMMENT ON TABLE nearsim.review IS
    'What each reviewer was shown at the review desk, leases that have not ended, and decisions with their verdicts';
COMMENT ON COLUMN nearsim.review.review_id IS 'Number of the row, ascending with time';
COMMENT ON COLUMN nearsim.review.collection_id IS 'The collection of the documents';
COMMENT ON COLUMN nearsim.review.reviewer IS 'The database user that was shown it; set by the database';
COMMENT ON COLUMN nearsim.review.by IS 'Who was shown it, as stated; the author of the verdict';
COMMENT ON COLUMN nearsim.review.queue IS 'The queue that it was taken from, an argument of review_queue';
COMMENT ON COLUMN nearsim.review.right_id IS
    'doc_id of the later document; for a choice of a document to keep, left_id again';
COMMENT ON COLUMN nearsim.review.leased_until IS
    'Nobody else is shown it until then; NULL once it is decided or given back';
COMMENT ON COLUMN nearsim.review.seen_at IS 'When it was shown';
COMMENT ON COLUMN nearsim.review.answer IS 'same, different, unsure or skipped, kept for a choice of a document to keep; NULL if it was seen only';
COMMENT ON COLUMN nearsim.review.why IS 'Reason, if one was given; NULL otherwise';
COMMENT ON COLUMN nearsim.review.decided_at IS 'When it was decided; NULL if it was not';
COMMENT ON COLUMN nearsim.review.decision_id IS
    'Number of the decision: its smallest review_id. Rows of one decision are undone together; NULL if it was not decided';
COMMENT ON COLUMN nearsim.review.verdict_id IS 'The verdict that it set; NULL if none';
COMMENT ON COLUMN nearsim.review.replaced_id IS 'The verdict that was replaced, which undo sets again; NULL if none';
COMMENT ON COLUMN nearsim.review.pin_id IS 'The choice of a document to keep that it made; NULL if none';
COMMENT ON COLUMN nearsim.review.undone_at IS 'When the decision was undone; NULL while it is active';
COMMENT ON COLUMN nearsim.review.probability IS
    'Probability with which the queue sample draws this pair; NULL in other queues';
