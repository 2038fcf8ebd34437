-- name: plan_sign_slices
-- Divide the documents without a signature, in doc_id order, into slices; no slices if all are signed. Reads the whole
-- collection, but no texts. With by_age it relies on document_age. The condition of by_age is always true, but it makes
-- PostgreSQL use this index: between two bounds of the age it expects few documents, above a single bound a third of all.
INSERT INTO nearsim_index.build_slice (generation_id, stage, slice_no, low, high, documents, done)
SELECT {generation_id}, 'sign', (place - 1) / %(documents)s, min(doc_id), max(doc_id), count(*), false
FROM (
    SELECT doc_id, row_number() OVER (ORDER BY doc_id) AS place FROM nearsim.document
    WHERE NOT CAST(%(all_signed)s AS boolean) AND collection_id = %(collection_id)s
        AND {is_within_age}
        AND (NOT CAST(%(by_age)s AS boolean) OR coalesce(published_at, created_at) <= 'infinity')
        AND NOT EXISTS (SELECT FROM {signature} AS signature WHERE signature.doc_id = document.doc_id)
) AS unsigned
GROUP BY 3
UNION ALL
-- An empty slice, so that a stage without work counts as planned, too.
SELECT {generation_id}, 'sign', -1, 0, 0, 0, true

-- name: plan_band_slices
-- Divide the heads, in doc_id order, into slices. Reads all signatures.
INSERT INTO nearsim_index.build_slice (generation_id, stage, slice_no, low, high, documents)
SELECT {generation_id}, 'bands', (place - 1) / %(heads)s, min(doc_id), max(doc_id), count(*)
FROM (
    SELECT doc_id, row_number() OVER (ORDER BY doc_id) AS place FROM {signature} AS signature WHERE head_id = doc_id
) AS head
GROUP BY 3

-- name: plan_pair_slice
-- Add a slice of buckets, with the buckets over the limit in it.
INSERT INTO nearsim_index.build_slice (generation_id, stage, slice_no, low, high, documents, full_buckets, last_anchors)
VALUES ({generation_id}, 'pairs', %(slice_no)s, %(low)s, %(high)s, %(documents)s, %(full_buckets)s, %(last_anchors)s)

-- name: take_slice
-- Lock the first slice on which nobody works, until the transaction ends. Also returns whether its documents should be
-- looked up by age: this is so if documents expire, and all slices together have fewer documents than a fifth of the doc_ids
-- in the range of this slice. If a process is idle for five minutes, the server ends its session, so that others can take
-- over. Relies on build_slice_pkey.
SELECT slice_no, low, high, stage = 'sign' AND high - CAST(low AS numeric) > (
    SELECT 5 * sum(any_slice.documents) FROM nearsim_index.build_slice AS any_slice
    WHERE any_slice.generation_id = {generation_id} AND any_slice.stage = %(stage)s)
    AND (SELECT nearsim.retention_of(recipe) IS NOT NULL FROM nearsim.generation
        WHERE generation_id = {generation_id})
FROM nearsim_index.build_slice,
    (SELECT set_config('idle_in_transaction_session_timeout', '300s', true)) AS configured
WHERE generation_id = {generation_id} AND stage = %(stage)s AND NOT done
ORDER BY slice_no LIMIT 1 FOR UPDATE OF build_slice SKIP LOCKED

-- name: finish_slice
-- Mark a slice as done. Relies on build_slice_pkey.
UPDATE nearsim_index.build_slice SET done = true, counts = %(counts)s
WHERE generation_id = {generation_id} AND stage = %(stage)s AND slice_no = %(slice_no)s

-- name: read_slices
-- Counts of a stage: slices, slices that are not done, documents that are done, and all documents. Relies on
-- build_slice_pkey.
SELECT count(*), count(*) FILTER (WHERE NOT done), coalesce(sum(documents) FILTER (WHERE done), 0),
    coalesce(sum(documents), 0)
FROM nearsim_index.build_slice WHERE generation_id = {generation_id} AND stage = %(stage)s

-- name: sum_slice_counts
-- Sums of the counts of the slices of a stage. Relies on build_slice_pkey.
SELECT key, sum(CAST(value AS bigint)) FROM nearsim_index.build_slice CROSS JOIN LATERAL jsonb_each_text(counts)
WHERE generation_id = {generation_id} AND stage = %(stage)s
GROUP BY key

-- name: read_full_buckets
-- Buckets over the limit, in order, each with its last anchor. Relies on build_slice_pkey.
SELECT bucket_hash, last_anchor FROM nearsim_index.build_slice
CROSS JOIN LATERAL unnest(full_buckets, last_anchors) AS bucket (bucket_hash, last_anchor)
WHERE generation_id = {generation_id} AND stage = 'pairs'
ORDER BY bucket_hash

-- name: delete_slices
-- Delete the slices of a finished build. Relies on build_slice_pkey.
DELETE FROM nearsim_index.build_slice WHERE generation_id = {generation_id}
