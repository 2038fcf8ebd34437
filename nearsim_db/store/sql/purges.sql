-- name: purge_documents
-- Documents of a collection go by their external ids. Relies on document_external_id_key.
DELETE FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = ANY(CAST(%(external_ids)s AS text[]))
RETURNING external_id, doc_id

-- name: purge_changes
-- What was noted of documents goes; a dispatcher that has taken some of it is waited for. Reads all notes.
DELETE FROM nearsim.change WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: note_deleted
-- Documents of a collection are gone: work is made of that for every generation, as of any other change.
INSERT INTO nearsim.change (collection_id, doc_id)
SELECT %(collection_id)s, doc_id FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS gone (doc_id)

-- name: blank_errors
-- One error is written to every document of the batch that failed, and may quote any of them. Reads what failed only.
-- Relies on work_tried_before.
UPDATE nearsim.work SET error = 'the error was about a document that was purged'
WHERE generation_id = {generation_id} AND attempts > 0 AND error IN (
    SELECT error FROM nearsim.work
    WHERE generation_id = {generation_id} AND attempts > 0 AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])))

-- name: purge_work
-- The work on documents goes, of the given stages and with what went wrong at it; who is storing some of it is waited
-- for. Relies on work_pkey.
DELETE FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = ANY(CAST(%(stages)s AS text[]))
    AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: find_leaf
-- Whether a generation's own tables are there, attached or not; they are made and dropped together.
SELECT pg_catalog.to_regclass(%(leaf)s) IS NOT NULL

-- name: count_traces
-- What a generation holds of some documents, band rows by their recomputed keys. Relies on the leaves' keys and indexes.
SELECT (SELECT count(*) FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))),
    (SELECT count(*) FROM {band} AS band
        JOIN unnest(CAST(%(owners)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS own (doc_id, bucket_hash)
        ON band.bucket_hash = own.bucket_hash AND band.doc_id = own.doc_id),
    (SELECT count(*) FROM {similar_pair} WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))),
    (SELECT count(*) FROM {cluster_member} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])))

-- name: strike_out
-- All rows of some documents go from a generation that nobody works on; reads the band table from end to end.
WITH bands AS (
    DELETE FROM {band} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
), pairs AS (
    DELETE FROM {similar_pair} WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING left_id
), members AS (
    DELETE FROM {cluster_member} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
), signatures AS (
    DELETE FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
)
SELECT (SELECT count(*) FROM signatures), (SELECT count(*) FROM bands), (SELECT count(*) FROM pairs),
    (SELECT count(*) FROM members)

-- name: rename_heads
-- The first twin that stays takes the name of a head that was struck out; it has no band rows, as nobody works here.
UPDATE {signature} AS signature SET head_id = first.doc_id
FROM (
    SELECT head_id, min(doc_id) AS doc_id FROM {signature}
    WHERE head_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY head_id
) AS first
WHERE signature.head_id = first.head_id

-- name: rename_clusters
-- The first member that stays gives its name to a cluster that had that of a document which was struck out.
UPDATE {cluster_member} AS member SET cluster_id = first.doc_id
FROM (
    SELECT cluster_id, min(doc_id) AS doc_id FROM {cluster_member}
    WHERE cluster_id = ANY(CAST(%(doc_ids)s AS bigint[])) GROUP BY cluster_id
) AS first
WHERE member.cluster_id = first.cluster_id

-- name: note_purge
-- Whoever keeps features of the collection in memory lets go of them when this changes.
UPDATE nearsim.collection SET purged_at = clock_timestamp() WHERE collection_id = %(collection_id)s RETURNING purged_at
