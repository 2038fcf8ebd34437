-- name: read_review_queue
-- Pairs of a queue, the most doubtful first (nearsim.review_queue).
SELECT left_id, right_id, left_external_id, right_external_id, left_title, right_title, left_source, right_source,
    similarity, intersection_size, union_size, estimate, shared_bands, numbers_differ, verdict, seen_by, probability
FROM nearsim.review_queue(%(collection)s, %(profile)s, %(queue)s, %(reviewer)s, %(min_similarity)s, %(max_similarity)s,
    %(source)s, %(since)s, %(until)s, %(text)s, %(unreviewed)s, %(max_pairs)s)

-- name: count_review_queues
-- Number of pairs that each queue has left, up to a maximum.
SELECT queue, pairs FROM nearsim.review_counts(%(collection)s, %(profile)s, %(reviewer)s, %(max_pairs)s)

-- name: may_review
-- Whether the user may write reviews and verdicts about a collection, and its name. Relies on collection_access_pkey.
SELECT has_column_privilege('nearsim.review', 'reviewer', 'INSERT')
    AND (NOT row_security_active(CAST('nearsim.review' AS regclass)) OR EXISTS (
        SELECT FROM nearsim_index.collection_access WHERE collection_id = %(collection_id)s AND may_write)), current_user

-- name: find_own_lease
-- The pair that a reviewer was shown last in a queue and has not decided, while the lease lasts. Relies on
-- review_one_lease.
SELECT left_id, right_id, probability FROM nearsim.review
WHERE collection_id = %(collection_id)s AND reviewer = %(reviewer)s AND queue = %(queue)s AND leased_until > now()
ORDER BY review_id DESC LIMIT 1

-- name: end_leases
-- End leases on a pair that have expired; what was seen stays on record. Relies on review_one_lease.
UPDATE nearsim.review SET leased_until = NULL
WHERE collection_id = %(collection_id)s AND left_id = %(left_id)s AND right_id = %(right_id)s AND leased_until <= now()

-- name: release_leases
-- Give back what a reviewer was shown and did not decide. Relies on review_one_lease.
UPDATE nearsim.review SET leased_until = NULL
WHERE collection_id = %(collection_id)s AND reviewer = %(reviewer)s AND leased_until IS NOT NULL

-- name: lease_pair
-- Lease a pair, unless somebody else has a lease on it; one's own is prolonged. Relies on review_one_lease.
INSERT INTO nearsim.review AS held (collection_id, reviewer, queue, left_id, right_id, leased_until, probability)
VALUES (%(collection_id)s, %(reviewer)s, %(queue)s, %(left_id)s, %(right_id)s,
    now() + make_interval(secs => %(lease_seconds)s), %(probability)s)
ON CONFLICT (collection_id, left_id, right_id) WHERE leased_until IS NOT NULL
DO UPDATE SET leased_until = excluded.leased_until WHERE held.reviewer = excluded.reviewer
RETURNING review_id

-- name: find_review
-- What holds a pair: somebody else's lease or a decision in force. Relies on review_pair.
SELECT reviewer, answer FROM nearsim.review
WHERE left_id = %(left_id)s AND right_id = %(right_id)s AND collection_id = %(collection_id)s
    AND (leased_until > now() AND reviewer <> %(reviewer)s
        OR answer IN ('same', 'different', 'unsure') AND undone_at IS NULL)
ORDER BY review_id DESC LIMIT 1

-- name: lock_current_verdict
-- The verdict in force on a pair, locked until the transaction ends. Relies on verdict_one_current.
SELECT verdict_id FROM nearsim.verdict
WHERE left_id = %(left_id)s AND right_id = %(right_id)s AND undone_at IS NULL FOR NO KEY UPDATE

-- name: pin_documents
-- Pin two documents by doc_id.
SELECT verdict_id FROM nearsim.pin_pair(%(left_id)s, %(right_id)s, %(why)s, %(by)s)

-- name: veto_documents
-- Veto two documents by doc_id.
SELECT verdict_id FROM nearsim.veto_pair(%(left_id)s, %(right_id)s, %(why)s, %(by)s)

-- name: undo_documents
-- Undo the verdict on two documents by doc_id.
SELECT verdict_id FROM nearsim.undo_verdict(%(left_id)s, %(right_id)s, %(why)s, %(by)s)

-- name: record_decision
-- Record an answer on the row of one's lease. Relies on review_pkey.
UPDATE nearsim.review SET leased_until = NULL, answer = %(answer)s, why = %(why)s, decided_at = clock_timestamp(),
    decision_id = %(decision_id)s, verdict_id = %(verdict_id)s, replaced_id = %(replaced_id)s
WHERE review_id = %(review_id)s

-- name: lock_last_decision
-- The last decision of a reviewer that is in force, if it is among the last fifty: its rows, locked. Relies on
-- review_decisions.
SELECT review_id, left_id, right_id, answer, verdict_id, replaced_id, queue FROM nearsim.review
WHERE review_id IN (
    SELECT review_id FROM nearsim.review
    WHERE collection_id = %(collection_id)s AND reviewer = %(reviewer)s AND decided_at IS NOT NULL
        AND decision_id = (
            SELECT decision_id FROM (
                SELECT decision_id, max(decided_at) AS at, bool_and(undone_at IS NOT NULL) AS is_undone
                FROM nearsim.review
                WHERE collection_id = %(collection_id)s AND reviewer = %(reviewer)s AND decided_at IS NOT NULL
                GROUP BY decision_id ORDER BY at DESC, decision_id DESC LIMIT 50
            ) AS latest
            WHERE NOT is_undone ORDER BY at DESC, decision_id DESC LIMIT 1))
ORDER BY review_id FOR NO KEY UPDATE

-- name: read_verdict
-- A verdict and whether it is in force. Relies on verdict_pkey.
SELECT verdict, by, why, undone_at IS NULL FROM nearsim.verdict WHERE verdict_id = %(verdict_id)s

-- name: record_undo
-- Record that a decision was undone. Relies on review_pkey.
UPDATE nearsim.review SET undone_at = clock_timestamp() WHERE review_id = %(review_id)s

-- name: read_review_progress
-- Decisions in force of a reviewer by answer, and the median seconds of the last 200. Relies on review_decisions.
SELECT count(*) FILTER (WHERE answer = 'same'), count(*) FILTER (WHERE answer = 'different'),
    count(*) FILTER (WHERE answer = 'unsure'), count(*) FILTER (WHERE answer = 'skipped'),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE place <= 200)
FROM (
    SELECT answer, date_part('epoch', decided_at - seen_at) AS seconds,
        row_number() OVER (ORDER BY decided_at DESC) AS place
    FROM nearsim.review
    WHERE collection_id = %(collection_id)s AND reviewer = %(reviewer)s AND decided_at IS NOT NULL
        AND undone_at IS NULL AND review_id = decision_id
) AS own

-- name: read_review_document
-- A document for display, with the first characters of its text (from body_of) and its length. Relies on document_pkey.
SELECT document.doc_id, document.external_id, document.title, left(text.body, %(characters)s), length(text.body),
    document.source, document.url, to_char(document.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
FROM nearsim.document
CROSS JOIN LATERAL (SELECT nearsim.body_of(document.doc_id) OFFSET 0) AS text (body)
WHERE document.doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND document.collection_id = %(collection_id)s

-- name: read_review_pair
-- The stored pair of two documents, twins expanded, in the live generation of a profile (nearsim.pairs).
SELECT similarity, intersection_size, union_size, estimate, shared_bands, numbers_differ, verdict, are_twins
FROM nearsim.pairs
WHERE collection_id = %(collection_id)s AND profile = %(profile)s AND left_id = %(left_id)s AND right_id = %(right_id)s

-- name: read_pair_reviews
-- What was seen and decided about a pair, latest first. Relies on review_pair.
SELECT reviewer, answer, why, undone_at IS NOT NULL, coalesce(decided_at, seen_at) FROM nearsim.review
WHERE left_id = %(left_id)s AND right_id = %(right_id)s AND collection_id = %(collection_id)s
ORDER BY review_id DESC LIMIT 20
