-- name: read_review_queue
-- Pairs of a queue, the most doubtful first (nearsim.review_queue).
SELECT similarity, intersection_size, union_size, estimate, shared_bands, numbers_differ, verdict,
    left_id, right_id, left_external_id, right_external_id, left_title, right_title, left_source, right_source,
    seen_by, probability
FROM nearsim.review_queue(%(collection)s, %(profile)s, %(queue)s, %(by)s, %(min_similarity)s, %(max_similarity)s,
    %(source)s, %(since)s, %(until)s, %(text)s, %(unreviewed)s, %(max_pairs)s)

-- name: count_review_queues
-- The number of pairs that each queue has left, up to a maximum, and whether the queue was searched to its end.
SELECT queue, pairs, complete FROM nearsim.review_counts(%(collection)s, %(profile)s, %(by)s, %(max_pairs)s)

-- name: find_review_end
-- The similarity at which the search of a queue stops (nearsim.review_end).
SELECT nearsim.review_end(%(collection)s, %(profile)s, %(queue)s, %(min_similarity)s, %(max_similarity)s)

-- name: may_review
-- Whether the user may write reviews and verdicts about a collection, and the user's name. Relies on
-- collection_access_pkey.
SELECT has_column_privilege('nearsim.review', 'by', 'INSERT')
    AND (NOT row_security_active(CAST('nearsim.review' AS regclass)) OR EXISTS (
        SELECT FROM nearsim_index.collection_access WHERE collection_id = %(collection_id)s AND may_write)), current_user

-- name: find_own_lease
-- The first pair of a queue on which a reviewer has a lease. Relies on review_one_lease.
SELECT left_id, right_id, probability FROM nearsim.review
WHERE collection_id = %(collection_id)s AND {by_caller} AND queue = %(queue)s AND leased_until > now()
ORDER BY review_id LIMIT 1

-- name: read_shortlist
-- The documents that have an open pair with a document, the most similar first, and who else has a lease on the pair.
-- Relies on the keys of similar_pair and on review_pair.
SELECT document.doc_id, document.external_id, document.title, document.source, document.url,
    to_char(document.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), pair.similarity,
    (SELECT numbers_digest FROM nearsim_index.signed WHERE generation_id = %(generation_id)s AND doc_id = pair.left_id)
        <> (SELECT numbers_digest FROM nearsim_index.signed WHERE generation_id = %(generation_id)s AND doc_id = pair.right_id),
    (SELECT {named_reviewer} FROM nearsim.review WHERE review.left_id = pair.left_id AND review.right_id = pair.right_id
        AND review.collection_id = %(collection_id)s AND leased_until > now() AND NOT {by_caller})
FROM nearsim_index.pair_ends AS pair
JOIN nearsim.document ON document.doc_id = pair.other_id AND document.collection_id IS NOT DISTINCT FROM %(collection_id)s
WHERE pair.generation_id = %(generation_id)s AND pair.doc_id = %(doc_id)s
    AND NOT EXISTS (
        SELECT FROM nearsim.verdict WHERE verdict.left_id = pair.left_id AND verdict.right_id = pair.right_id
            AND verdict.undone_at IS NULL)
    AND NOT EXISTS (
        SELECT FROM nearsim.review WHERE review.left_id = pair.left_id AND review.right_id = pair.right_id
            AND review.collection_id = %(collection_id)s AND decided_at IS NOT NULL AND undone_at IS NULL
            AND (answer <> 'skipped' OR {by_caller}))
ORDER BY pair.similarity DESC, document.doc_id
LIMIT %(max_documents)s

-- name: end_leases
-- End expired leases on these pairs; the rows stay as a record of what reviewers were shown. Relies on review_one_lease.
UPDATE nearsim.review SET leased_until = NULL
FROM unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) AS wanted (left_id, right_id)
WHERE collection_id = %(collection_id)s AND review.left_id = wanted.left_id AND review.right_id = wanted.right_id
    AND leased_until <= now()

-- name: release_leases
-- End all leases of a reviewer. Relies on review_one_lease.
UPDATE nearsim.review SET leased_until = NULL
WHERE collection_id = %(collection_id)s AND {by_caller} AND leased_until IS NOT NULL

-- name: lease_pairs
-- Lease pairs, except those on which somebody else has a lease; leases of the reviewer are prolonged. Relies on
-- review_one_lease.
INSERT INTO nearsim.review (collection_id, by, queue, left_id, right_id, leased_until, probability)
SELECT %(collection_id)s, %(by)s, %(queue)s, left_id, right_id, now() + make_interval(secs => %(lease_seconds)s),
    probability
FROM unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[]),
    CAST(%(probabilities)s AS double precision[])) AS wanted (left_id, right_id, probability)
ON CONFLICT (collection_id, left_id, right_id) WHERE leased_until IS NOT NULL
DO UPDATE SET leased_until = excluded.leased_until WHERE {by_caller}
RETURNING left_id, right_id, review_id

-- name: find_holders
-- Who has a lease on one of these pairs, or made a decision about it that was not undone. Relies on review_pair.
SELECT {named_reviewer}, answer FROM nearsim.review
JOIN unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) AS wanted (left_id, right_id)
    ON review.left_id = wanted.left_id AND review.right_id = wanted.right_id
WHERE collection_id = %(collection_id)s
    AND (leased_until > now() AND NOT {by_caller}
        OR NOT %(replaces)s AND answer IN ('same', 'different', 'unsure') AND undone_at IS NULL)
ORDER BY review_id DESC LIMIT 1

-- name: lock_documents
-- Those of the documents that are in a collection; they are locked until the transaction ends, so that nobody can delete
-- them or move them to another collection. Relies on document_pkey.
SELECT doc_id FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s ORDER BY doc_id FOR KEY SHARE

-- name: lock_current_verdicts
-- The verdicts on these pairs that are in force, locked until the transaction ends. Relies on verdict_one_current.
SELECT verdict.left_id, verdict.right_id, verdict_id FROM nearsim.verdict
JOIN unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) AS wanted (left_id, right_id)
    ON verdict.left_id = wanted.left_id AND verdict.right_id = wanted.right_id
WHERE collection_id = %(collection_id)s AND undone_at IS NULL ORDER BY verdict_id FOR NO KEY UPDATE OF verdict

-- name: set_verdicts
-- Pin pairs (same) or veto them (different), by doc_id.
SELECT left_id, right_id, verdict_id FROM nearsim.store_verdicts(
    ARRAY(
        SELECT CASE answer WHEN 'same' THEN 'pinned' ELSE 'vetoed' END
        FROM unnest(CAST(%(answers)s AS text[])) WITH ORDINALITY AS decided (answer, place) ORDER BY place),
    CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[]), %(why)s, %(by)s)

-- name: undo_verdicts
-- Undo the verdicts on pairs, by doc_id, and set again the verdicts that they had replaced. Relies on verdict_pkey.
SELECT undone.verdict_id, CASE WHEN replaced.verdict_id IS NOT NULL THEN (
    SELECT verdict_id FROM nearsim.store_verdicts(ARRAY[replaced.verdict], ARRAY[decided.left_id], ARRAY[decided.right_id],
        replaced.why, replaced.by)) END
FROM unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[]), CAST(%(replaced_ids)s AS bigint[]))
    AS decided (left_id, right_id, replaced_id)
JOIN nearsim.undo_current_verdicts(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[]), %(why)s, %(by)s)
    AS undone USING (left_id, right_id)
LEFT JOIN nearsim.verdict AS replaced ON replaced.verdict_id = decided.replaced_id
    AND replaced.collection_id = %(collection_id)s
    AND replaced.left_id = decided.left_id AND replaced.right_id = decided.right_id

-- name: record_decision
-- Record answers in the rows of leases, and end these leases. Relies on review_pkey.
UPDATE nearsim.review SET leased_until = NULL, answer = decided.answer, why = %(why)s, decided_at = clock_timestamp(),
    decision_id = %(decision_id)s, verdict_id = decided.verdict_id, replaced_id = decided.replaced_id, pin_id = %(pin_id)s
FROM unnest(CAST(%(review_ids)s AS bigint[]), CAST(%(answers)s AS text[]), CAST(%(verdict_ids)s AS bigint[]),
    CAST(%(replaced_ids)s AS bigint[])) AS decided (review_id, answer, verdict_id, replaced_id)
WHERE review.review_id = decided.review_id AND collection_id = %(collection_id)s

-- name: lock_last_decision
-- Lock and return the rows of a reviewer's last decision that was not undone, if it is among the last fifty decisions.
-- Relies on review_decisions.
SELECT review_id, left_id, right_id, answer, verdict_id, replaced_id, pin_id, queue FROM nearsim.review
WHERE review_id IN (
    SELECT review_id FROM nearsim.review
    WHERE collection_id = %(collection_id)s AND {by_caller} AND decided_at IS NOT NULL
        AND decision_id = (
            SELECT decision_id FROM (
                SELECT decision_id, max(decided_at) AS at, bool_and(undone_at IS NOT NULL) AS is_undone
                FROM nearsim.review
                WHERE collection_id = %(collection_id)s AND {by_caller} AND decided_at IS NOT NULL
                GROUP BY decision_id ORDER BY at DESC, decision_id DESC LIMIT 50
            ) AS latest
            WHERE NOT is_undone ORDER BY at DESC, decision_id DESC LIMIT 1))
ORDER BY review_id FOR NO KEY UPDATE

-- name: record_undo
-- Record that a decision was undone. Relies on review_pkey.
UPDATE nearsim.review SET undone_at = clock_timestamp()
WHERE review_id = ANY(CAST(%(review_ids)s AS bigint[])) AND collection_id = %(collection_id)s

-- name: read_review_progress
-- The number of a reviewer's decisions that were not undone, by answer, and the median time in seconds for the last 200.
-- Relies on review_decisions.
SELECT count(*) FILTER (WHERE answer = 'same'), count(*) FILTER (WHERE answer = 'different'),
    count(*) FILTER (WHERE answer = 'unsure'), count(*) FILTER (WHERE answer = 'skipped'),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE place <= 200)
FROM (
    SELECT answer, date_part('epoch', decided_at - seen_at) AS seconds,
        row_number() OVER (ORDER BY decided_at DESC) AS place
    FROM nearsim.review
    WHERE collection_id = %(collection_id)s AND {by_caller} AND decided_at IS NOT NULL
        AND undone_at IS NULL AND review_id = decision_id AND pin_id IS NULL
) AS decision

-- name: read_review_document
-- Documents for display, with the first characters and the length of their texts, from bodies_of. Relies on document_pkey.
SELECT document.doc_id, document.external_id, document.title, document.source, document.url,
    to_char(document.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), left(text.body, %(characters)s), length(text.body)
FROM nearsim.document
LEFT JOIN nearsim.bodies_of(CAST(%(doc_ids)s AS bigint[])) AS text ON text.doc_id = document.doc_id
WHERE document.doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND document.collection_id IS NOT DISTINCT FROM %(collection_id)s

-- name: read_review_pair
-- The stored pair of two documents, twins expanded, in the live generation of a profile (nearsim.stored_pairs).
SELECT similarity, intersection_size, union_size, estimate, shared_bands, numbers_differ, verdict, are_twins
FROM nearsim.stored_pairs
WHERE collection_id = %(collection_id)s AND profile = %(profile)s AND left_id = %(left_id)s AND right_id = %(right_id)s

-- name: read_pair_reviews
-- Who saw and decided a pair, the latest first. Relies on review_pair.
SELECT {named_reviewer}, answer, why, undone_at IS NOT NULL, coalesce(decided_at, seen_at) FROM nearsim.review
WHERE left_id = %(left_id)s AND right_id = %(right_id)s AND collection_id = %(collection_id)s
ORDER BY review_id DESC LIMIT 20

-- name: read_sampled
-- Decided pairs that the queue sample drew: the similarity, whether the last decision that was not undone is `same`, and the
-- probability of the draw. Relies on review_decisions and on the key of similar_pair.
SELECT pair.similarity, decided.answer = 'same', decided.probability
FROM (
    SELECT DISTINCT ON (left_id, right_id) left_id, right_id, answer, probability FROM nearsim.review
    WHERE collection_id = %(collection_id)s AND queue = 'sample' AND probability IS NOT NULL
        AND answer IN ('same', 'different') AND undone_at IS NULL
    ORDER BY left_id, right_id, decided_at DESC
) AS decided
JOIN nearsim.similar_pair AS pair ON pair.generation_id = %(generation_id)s
    AND pair.left_id = decided.left_id AND pair.right_id = decided.right_id

-- name: read_cluster_documents
-- The first documents of a cluster by doc_id. Relies on the index on cluster_id and on document_pkey.
SELECT member.doc_id, document.external_id, document.title, document.source, document.url,
    to_char(document.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), member.is_survivor
FROM nearsim.cluster_member AS member
JOIN nearsim.document ON document.doc_id = member.doc_id AND document.collection_id IS NOT DISTINCT FROM %(collection_id)s
WHERE member.generation_id = %(generation_id)s AND member.cluster_id = %(cluster_id)s
ORDER BY member.doc_id LIMIT %(max_documents)s

-- name: read_cluster_ties
-- Ties between these documents: pairs without a verdict (kind 0), twins with their head (1), and pins (2). Each tie is
-- packed as two doc_ids, similarity and kind, of eight bytes each. Relies on the keys of similar_pair and signature, and on
-- verdict_one_current.
SELECT coalesce(string_agg(int8send(left_id) || int8send(right_id) || float8send(similarity) || int8send(kind), ''), '')
FROM (
    SELECT pair.left_id, pair.right_id, pair.similarity, 0 FROM nearsim.similar_pair AS pair
    WHERE pair.generation_id = %(generation_id)s AND NOT pair.in_review
        AND pair.left_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND pair.right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        AND NOT EXISTS (
            SELECT FROM nearsim.verdict WHERE verdict.left_id = pair.left_id AND verdict.right_id = pair.right_id
                AND undone_at IS NULL)
    UNION ALL
    SELECT head_id, doc_id, 1, 1 FROM nearsim.signature
    WHERE generation_id = %(generation_id)s AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id < doc_id
        AND head_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        AND NOT EXISTS (
            SELECT FROM nearsim.verdict WHERE verdict.left_id = signature.head_id AND verdict.right_id = signature.doc_id
                AND undone_at IS NULL)
    UNION ALL
    SELECT left_id, right_id, 1, 2 FROM nearsim.verdict
    WHERE verdict = 'pinned' AND undone_at IS NULL AND left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        AND right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
) AS tie (left_id, right_id, similarity, kind)

-- name: read_cluster_neighbours
-- The documents of a cluster that are tied to one of its documents as a pair, as twins or by a pin. Relies on the keys of
-- similar_pair and cluster_member, on signature_head, and on verdict_pair_key and verdict_right.
SELECT DISTINCT tied.doc_id FROM (
    SELECT other_id AS doc_id FROM nearsim_index.pair_ends
    WHERE generation_id = %(generation_id)s AND doc_id = %(doc_id)s AND NOT in_review
    UNION ALL
    SELECT head_id FROM nearsim.signature
    WHERE generation_id = %(generation_id)s AND doc_id = %(doc_id)s AND head_id < doc_id
    UNION ALL
    SELECT doc_id FROM nearsim.signature
    WHERE generation_id = %(generation_id)s AND head_id = %(doc_id)s AND head_id < doc_id
    UNION ALL
    SELECT right_id FROM nearsim.verdict WHERE left_id = %(doc_id)s AND verdict = 'pinned' AND undone_at IS NULL
    UNION ALL
    SELECT left_id FROM nearsim.verdict WHERE right_id = %(doc_id)s AND verdict = 'pinned' AND undone_at IS NULL
) AS tied
WHERE %(cluster_id)s = (
        SELECT cluster_id FROM nearsim.cluster_member AS member
        WHERE member.generation_id = %(generation_id)s AND member.doc_id = tied.doc_id)
    AND NOT EXISTS (
        SELECT FROM nearsim.verdict WHERE verdict.left_id = least(%(doc_id)s, tied.doc_id)
            AND verdict.right_id = greatest(%(doc_id)s, tied.doc_id) AND verdict = 'vetoed' AND undone_at IS NULL)
ORDER BY tied.doc_id

-- name: find_cluster_ids
-- The clusters of these documents. Relies on the key of cluster_member.
SELECT doc_id, cluster_id FROM nearsim.cluster_member
WHERE generation_id = %(generation_id)s AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: has_visible_work
-- Whether changes, or work of a generation, wait for a worker, as far as the user may see them. Relies on work_pkey.
SELECT EXISTS (
        SELECT FROM nearsim_index.visible_changes WHERE collection_id = %(collection_id)s OR collection_id IS NULL)
    OR EXISTS (
        SELECT FROM nearsim_index.queued_work WHERE generation_id = %(generation_id)s AND set_aside_at IS NULL)

-- name: keep_document
-- Choose a document to keep in its cluster, by doc_id.
SELECT pin_id FROM nearsim.pin_survivor_by_doc_id(CAST(%(doc_id)s AS bigint), %(why)s, %(by)s)

-- name: undo_keeps
-- Undo choices of documents to keep that are in force. Relies on survivor_pin_pkey.
UPDATE nearsim.survivor_pin SET undone_by = %(by)s, undone_why = %(why)s, undone_at = now()
WHERE pin_id = ANY(CAST(%(pin_ids)s AS bigint[])) AND collection_id = %(collection_id)s AND undone_at IS NULL
