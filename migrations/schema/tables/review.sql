-- Pairs that reviewers were shown at the review desk, and the reviewers' answers. A row belongs to documents, not to an index,
-- and outlives both, so it has no foreign keys to them. Writers can insert any values; the foreign keys ensure that a row
-- names only verdicts and choices about its own documents, which undo relies on.
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
    'Pairs that reviewers were shown at the review desk, with the reviewers'' leases, decisions and verdicts';
COMMENT ON COLUMN nearsim.review.review_id IS 'Number of the row, ascending with time';
COMMENT ON COLUMN nearsim.review.collection_id IS 'The collection of the documents';
COMMENT ON COLUMN nearsim.review.reviewer IS 'The database user that was shown the pair; set by the database';
COMMENT ON COLUMN nearsim.review.by IS 'Name of the reviewer, as stated by the caller; the author of the verdict';
COMMENT ON COLUMN nearsim.review.queue IS 'The queue from which the pair was taken, an argument of review_queue';
COMMENT ON COLUMN nearsim.review.right_id IS
    'doc_id of the right document, the larger of the two; equal to left_id for the choice of a document to keep';
COMMENT ON COLUMN nearsim.review.leased_until IS
    'Until when nobody else is shown the pair; NULL once it is decided or released';
COMMENT ON COLUMN nearsim.review.seen_at IS 'When the pair was shown';
COMMENT ON COLUMN nearsim.review.answer IS 'same, different, unsure or skipped; kept for the choice of a document to keep; NULL if the pair was only shown';
COMMENT ON COLUMN nearsim.review.why IS 'Reason; NULL if the reviewer stated none';
COMMENT ON COLUMN nearsim.review.decided_at IS 'When the pair was decided; NULL if it was not';
COMMENT ON COLUMN nearsim.review.decision_id IS
    'Number of the decision: the smallest review_id among its rows, which are undone together; NULL if the pair was not decided';
COMMENT ON COLUMN nearsim.review.verdict_id IS 'The verdict that the decision set; NULL if it set none';
COMMENT ON COLUMN nearsim.review.replaced_id IS 'The verdict that the decision replaced, and that undo sets again; NULL if there was none';
COMMENT ON COLUMN nearsim.review.pin_id IS 'The choice of a document to keep that the decision made; NULL if it made none';
COMMENT ON COLUMN nearsim.review.undone_at IS 'When the decision was undone; NULL while it is in force';
COMMENT ON COLUMN nearsim.review.probability IS
    'Probability with which the queue sample draws this pair; NULL in other queues';
