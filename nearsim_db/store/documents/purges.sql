-- name: purge_changes
-- Delete captured changes of documents. The caller has a lock that keeps dispatchers out. Reads all of nearsim.change.
DELETE FROM nearsim.change WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: capture_deletes
-- Capture the deletion of documents, which is then dispatched to every generation like any other change.
INSERT INTO nearsim.change (collection_id, doc_id)
SELECT %(collection_id)s, doc_id FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS deleted (doc_id)

-- name: redact_errors
-- Redact errors that may quote a purged document; a failed batch writes the same error to all of its documents. Relies on
-- work_tried_before, which has only work that failed.
UPDATE nearsim.work SET error = 'redacted: the error was about a purged document'
WHERE generation_id = {generation_id} AND attempts > 0 AND error IN (
    SELECT error FROM nearsim.work
    WHERE generation_id = {generation_id} AND attempts > 0
        AND (doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR doc_ids && CAST(%(doc_ids)s AS bigint[])))

-- name: purge_work
-- Delete work on documents in these stages, including its errors. Waits for transactions that store results of this work.
-- Relies on work_pkey.
DELETE FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = ANY(CAST(%(stages)s AS text[]))
    AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: purge_batches
-- Take documents out of the batches in these stages, and return the number of documents that were taken out. Waits for
-- transactions that store results of these batches. Relies on work_pkey.
WITH affected AS MATERIALIZED (
    SELECT stage, doc_id, doc_ids FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = ANY(CAST(%(stages)s AS text[])) AND doc_id < 0
        AND doc_ids && CAST(%(doc_ids)s AS bigint[])
    ORDER BY stage, doc_id FOR UPDATE
), purged AS (
    UPDATE nearsim.work SET doc_ids = ARRAY(
        SELECT document.doc_id FROM unnest(affected.doc_ids) WITH ORDINALITY AS document (doc_id, place)
        WHERE document.doc_id <> ALL (CAST(%(doc_ids)s AS bigint[])) ORDER BY place)
    FROM affected
    WHERE work.generation_id = {generation_id} AND work.stage = affected.stage AND work.doc_id = affected.doc_id
    RETURNING cardinality(affected.doc_ids) - cardinality(work.doc_ids) AS documents
)
SELECT coalesce(sum(documents), 0) FROM purged

-- name: count_traces
-- Numbers of a generation's rows about these documents; band rows are looked up by bucket hashes that were computed again.
-- Relies on the leaves' keys and indexes.
SELECT (SELECT count(*) FROM {signature} AS signature WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))),
    (SELECT count(*) FROM {band} AS band
        JOIN unnest(CAST(%(owners)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS own (doc_id, bucket_hash)
        ON band.bucket_hash = own.bucket_hash AND band.doc_id = own.doc_id),
    (SELECT count(*) FROM {stored_pair} AS similar_pair WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))),
    (SELECT count(*) FROM {cluster_member} AS cluster_member WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])))

-- name: delete_document_rows
-- Delete all rows about these documents from a generation that is not maintained. Reads the whole band table.
WITH bands AS (
    DELETE FROM {band_leaf} WHERE {of_generation} AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
), pairs AS (
    DELETE FROM {similar_pair_leaf} WHERE {of_view}
        AND (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))
    RETURNING left_id
), members AS (
    DELETE FROM {cluster_member_leaf} WHERE {of_view} AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
), signatures AS (
    DELETE FROM {signature_leaf} WHERE {of_generation} AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
)
SELECT (SELECT count(*) FROM signatures), (SELECT count(*) FROM bands), (SELECT count(*) FROM pairs),
    (SELECT count(*) FROM members)

-- name: reassign_heads
-- If a head was deleted, make its first remaining twin the head. The new head gets no band rows, because the generation is
-- not maintained. Relies on the index on head_id.
UPDATE {signature_leaf} AS signature SET head_id = first.doc_id
FROM (
    SELECT head_id, min(doc_id) AS doc_id FROM {signature} AS signature
    WHERE head_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id GROUP BY head_id
) AS first
WHERE {of_generation} AND signature.head_id = first.head_id AND signature.head_id <> signature.doc_id

-- name: reassign_clusters
-- If the document whose doc_id is a cluster's number was deleted, number the cluster after its first remaining member.
-- Relies on the leaf's index on cluster_id.
UPDATE {cluster_member_leaf} AS member SET cluster_id = first.doc_id
FROM (
    SELECT cluster_id, min(doc_id) AS doc_id FROM {cluster_member} AS cluster_member
    WHERE cluster_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY cluster_id
) AS first
WHERE {of_view} AND member.cluster_id = first.cluster_id

-- name: record_purge
-- Record the time of a purge, which tells processes to discard the features that they cache. Relies on collection_pkey.
UPDATE nearsim.collection SET purged_at = clock_timestamp() WHERE collection_id = %(collection_id)s RETURNING purged_at
