-- name: is_pin_of_signed
-- Condition on a verdict: it is a pin that is in force, between two documents with signatures.
collection_id = %(collection_id)s AND verdict = 'pinned' AND undone_at IS NULL
    AND EXISTS (SELECT FROM {signature} AS signature WHERE doc_id = left_id)
    AND EXISTS (SELECT FROM {signature} AS signature WHERE doc_id = right_id)

-- name: first_of_numbers
-- The first document with the same head and the same numbers as `requested`.
(
    SELECT doc_id FROM {signed} AS signed
    WHERE head_id = requested.head_id AND numbers_digest = requested.numbers_digest
    ORDER BY generation_id, head_id, doc_id LIMIT 1
)

-- name: on_conflict_update
-- Update a document that exists and differs; if the new document has no vector, the stored vector is kept.
ON CONFLICT (collection_id, external_id) DO UPDATE SET
    title = excluded.title, body = excluded.body, source = excluded.source, url = excluded.url,
    published_at = excluded.published_at, attributes = excluded.attributes,
    vector = coalesce(excluded.vector, document.vector)
WHERE (document.title, document.body, document.source, document.url, document.published_at,
       document.attributes)
    IS DISTINCT FROM (excluded.title, excluded.body, excluded.source, excluded.url,
       excluded.published_at, excluded.attributes)
    OR excluded.vector IS NOT NULL AND document.vector IS DISTINCT FROM excluded.vector

-- name: failed_work
-- Work that failed or was set aside and is not being processed, for some documents or for all, including deleted ones.
SELECT work.generation_id, work.stage, work.doc_id, coalesce(document.external_id, '#' || work.doc_id) AS id
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
JOIN nearsim.work USING (generation_id)
LEFT JOIN nearsim.document ON document.doc_id = work.doc_id AND document.collection_id = collection.collection_id
WHERE work.attempts > 0 AND work.lease_id IS NULL
    AND (collection.collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
    AND (coalesce(document.external_id, '#' || work.doc_id) = ANY(CAST(%(ids)s AS text[])) OR %(ids)s IS NULL)

-- name: serving
-- The collection of a generation, if the generation is live and no texts were purged since the caller filled its cache.
(
    SELECT collection.collection_id FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE generation.generation_id = {generation_id} AND generation.state = 'live'
        AND collection.purged_at IS NOT DISTINCT FROM CAST(%(purged_at)s AS timestamptz)
) AS serving

-- name: with_twin_and_its_pairs
-- Adds to `linked` the document `twin` and the documents that are paired with it.
UNION
SELECT doc_id FROM twin
UNION
SELECT pair.other_id FROM twin CROSS JOIN LATERAL (
    SELECT other_id FROM {pair_end} AS pair WHERE doc_id = twin.doc_id OFFSET 0) AS pair

-- name: packed_heads
-- The heads among the documents `linked`: their doc_ids, sketches, digests and sizes of sketches, each packed in one order.
SELECT string_agg(int8send(linked.doc_id), '') AS doc_ids, string_agg(head.sketch, '') AS sketches,
    string_agg(uuid_send(head.feature_digest), '') AS digests,
    string_agg(int4send(octet_length(head.sketch)), '') AS sizes
FROM linked CROSS JOIN LATERAL (
    SELECT sketch, feature_digest FROM {signature} AS signature
    WHERE doc_id = linked.doc_id AND head_id = linked.doc_id LIMIT 1
) AS head

-- name: shared_buckets
-- The signatures `left_signature` and `right_signature` of two documents, with a row for each bucket hash that both have.
nearsim.generation
JOIN {signature} AS left_signature ON left_signature.doc_id = %(left_id)s
JOIN {signature} AS right_signature ON right_signature.doc_id = %(right_id)s
CROSS JOIN LATERAL (
    SELECT unnest(nearsim.keys_under(recipe, bands, rows, left_signature.sketch)) AS bucket_hash
    INTERSECT
    SELECT unnest(nearsim.keys_under(recipe, bands, rows, right_signature.sketch))
) AS shared

-- name: survivor_of_members
-- The survivor of each cluster in `member`, or its first document in `member`.
SELECT DISTINCT ON (cluster_id) cluster_id, doc_id, head_id, numbers_digest
FROM member ORDER BY cluster_id, is_survivor DESC, doc_id

-- name: members_like_survivor
-- Each `member` with its `survivor` and the similarity of the two, which is NULL if they are not a pair.
member
JOIN survivor USING (cluster_id)
LEFT JOIN {similar_pair} AS pair ON pair.left_id = least(member.head_id, survivor.head_id)
    AND pair.right_id = greatest(member.head_id, survivor.head_id)
CROSS JOIN LATERAL (
    SELECT CASE WHEN member.head_id = survivor.head_id THEN 1 ELSE pair.similarity END
) AS likeness (similarity)

-- name: repeat_on_conflict
-- If `stored` work failed before, reset it, so that it is done again from the start.
ON CONFLICT (generation_id, stage, doc_id) DO UPDATE SET
    attempts = 0, reached = 0, error = NULL, set_aside_at = NULL, lost_lease_id = NULL, due_at = now(), queued_at = now()
WHERE stored.attempts > 0

-- name: leased_as_batch
-- Put the `free` work of a stage under a lease. Documents with equal attempts, errors and so on get one row for all of them,
-- a batch, which has a negative number in place of a doc_id.
renewed AS (
    UPDATE nearsim_index.lease SET beat_at = clock_timestamp() WHERE lease_id = %(lease_id)s RETURNING lease_id
), taken AS (
    DELETE FROM nearsim.work USING renewed
    WHERE work.ctid = ANY (ARRAY(SELECT ctid FROM free))
    RETURNING work.doc_id, work.queued_at, work.attempts, work.reached, work.error, work.lost_lease_id,
        renewed.lease_id
)
INSERT INTO nearsim.work
    (generation_id, doc_id, stage, lease_id, doc_ids, queued_at, attempts, reached, error, lost_lease_id)
SELECT {generation_id}, CAST(-1 - random() * 1e18 AS bigint), %(stage)s, lease_id, array_agg(doc_id ORDER BY doc_id),
    min(queued_at), attempts, reached, error, lost_lease_id
FROM taken GROUP BY lease_id, attempts, reached, error, lost_lease_id
RETURNING doc_id, stage, doc_ids, attempts, reached

-- name: pair_of_report
-- Evidence of `pair`, and its documents.
pair.similarity, pair.intersection_size, pair.union_size, pair.estimate, pair.shared_bands, pair.distance,
    (SELECT nearsim.is_exact(recipe) FROM nearsim.generation WHERE generation_id = {generation_id}),
    pair.left_id, pair.right_id

-- name: with_cluster_and_verdict
-- The cluster of `pair`, as `member`, and the verdict on the pair that is in force; either may be missing.
LEFT JOIN {cluster_member} AS member ON member.doc_id = pair.left_id
LEFT JOIN nearsim.verdict ON verdict.left_id = pair.left_id AND verdict.right_id = pair.right_id AND undone_at IS NULL

-- name: is_within_age
-- Condition on a document: it is within the retention age of the generation, or the recipe has no retention age. No other
-- place decides this. clock_timestamp() is read after the snapshot was taken. So if a sweep of expired documents did not see
-- a document, the clock here is later than it was in that sweep.
coalesce(published_at, created_at) >= (
    SELECT coalesce(clock_timestamp() - nearsim.retention_of(recipe), '-infinity')
    FROM nearsim.generation WHERE generation_id = {generation_id})

-- name: with_source_row
-- Joins to the document `attached` its text from the attached table, if it has a row there.
LEFT JOIN LATERAL (
    SELECT source.{text} AS body FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1
) AS source_row ON attached.body_digest IS NOT NULL

-- name: source_document
-- The document `attached`, which is to be signed, with its text, and whether the text differs from the recorded digest.
attached.doc_id, attached.revision, attached.title,
    CASE WHEN attached.body_digest IS NULL THEN attached.body ELSE source_row.body END, CAST(NULL AS real[]),
    attached.body_digest <> CAST(md5(coalesce(source_row.body, '')) AS uuid)

-- name: by_caller
-- Condition on a review: it is by the current user, under the stated name.
(review.reviewer = current_user AND review.by = %(by)s)

-- name: named_reviewer
-- The stated name of a reviewer; if another user stated it, that user's name follows in parentheses.
review.by || CASE WHEN review.reviewer <> current_user THEN ' (' || review.reviewer || ')' ELSE '' END
