-- name: list_verdicts
-- The verdicts of a collection, newest first. The id of a deleted document is '#' and its doc_id. Relies on
-- verdict_collection.
SELECT coalesce(left_external_id, '#' || left_id), coalesce(right_external_id, '#' || right_id), verdict, by, why, at,
    undone_by, undone_why, undone_at, collection, left_title, right_title
FROM nearsim.verdicts
WHERE collection_id = %(collection_id)s AND (%(undone)s OR undone_at IS NULL)
    AND (CAST(%(by)s AS text) IS NULL OR %(by)s IN (by, undone_by))
ORDER BY verdict_id DESC

-- name: has_veto
-- Whether a collection has or had a veto. Relies on verdict_collection.
SELECT EXISTS (SELECT FROM nearsim.verdict WHERE collection_id = %(collection_id)s AND verdict = 'vetoed')

-- name: read_vetoes
-- The vetoes of a collection that are in force; both doc_ids are packed into eight bytes each. Relies on verdict_collection.
SELECT coalesce(string_agg(int8send(left_id) || int8send(right_id), ''), '') FROM nearsim.verdict
WHERE collection_id = %(collection_id)s AND verdict = 'vetoed' AND undone_at IS NULL

-- name: find_vetoed
-- Those of the documents that have, or had, a veto with another document, and those of the clusters that have such a member;
-- the ids are packed into eight bytes each. Relies on the leaf's index on cluster_id, and on verdict_pair_key and
-- verdict_right.
SELECT coalesce(string_agg(DISTINCT int8send(requested.id), ''), '')
FROM (
    SELECT doc_id, doc_id AS id FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS document (doc_id)
    UNION ALL
    SELECT doc_id, cluster_id FROM {cluster_member} AS cluster_member WHERE cluster_id = ANY(CAST(%(cluster_ids)s AS bigint[]))
) AS requested
WHERE EXISTS (
        SELECT FROM nearsim.verdict
        WHERE left_id = requested.doc_id AND collection_id = %(collection_id)s AND verdict = 'vetoed')
    OR EXISTS (
        SELECT FROM nearsim.verdict
        WHERE right_id = requested.doc_id AND collection_id = %(collection_id)s AND verdict = 'vetoed')

-- name: find_pinned
-- Those of the documents that have a pin in force, packed into eight bytes each. Relies on verdict_pair_key and
-- verdict_right.
SELECT coalesce(string_agg(int8send(requested.doc_id), ''), '')
FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS requested (doc_id)
WHERE EXISTS (
        SELECT FROM nearsim.verdict WHERE left_id = requested.doc_id AND collection_id = %(collection_id)s
            AND verdict = 'pinned' AND undone_at IS NULL)
    OR EXISTS (
        SELECT FROM nearsim.verdict WHERE right_id = requested.doc_id AND collection_id = %(collection_id)s
            AND verdict = 'pinned' AND undone_at IS NULL)

-- name: purge_verdicts
-- Delete the verdicts, reviews and choices about documents, including their reasons. Returns for each verdict whether it was
-- a veto. Relies on verdict_pair_key, verdict_right, review_pair, review_right and survivor_pin_document_key.
WITH kept AS (
    DELETE FROM nearsim.survivor_pin WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
), reviews AS (
    DELETE FROM nearsim.review
    WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
)
DELETE FROM nearsim.verdict
WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
RETURNING verdict = 'vetoed'

-- name: judge_pair
-- Pin or veto two documents of a collection, named by external_id, or undo the verdict on them.
SELECT left_external_id, right_external_id, verdict, by, why, at, undone_by, undone_why, undone_at, collection,
    left_title, right_title
FROM {judge}(CAST(%(a)s AS text), CAST(%(b)s AS text), %(why)s, coalesce(%(by)s, current_user), %(collection)s)

-- name: judge_survivor
-- Choose a document of a collection, named by external_id, as the one to keep, or undo the newest choice of this document.
SELECT external_id, title, collection, by, why, at, undone_by, undone_why, undone_at
FROM {judge}(CAST(%(document)s AS text), %(why)s, coalesce(%(by)s, current_user), %(collection)s)

-- name: list_labels
-- The verdicts in force on existing documents, as labelled pairs, in the order of the verdicts. Relies on
-- verdict_collection.
SELECT left_external_id, right_external_id, verdict = 'pinned' FROM nearsim.verdicts
WHERE collection_id = %(collection_id)s AND undone_at IS NULL AND num_nulls(left_external_id, right_external_id) = 0
ORDER BY verdict_id

-- name: find_labelled
-- Labelled pairs as doc_ids, the smaller first, each with its label, the verdict in force, and whether both documents exist.
-- Relies on document_external_id_key and verdict_one_current.
SELECT least(a.doc_id, b.doc_id), greatest(a.doc_id, b.doc_id), labelled.is_same, verdict.verdict,
    a.doc_id IS NOT NULL AND b.doc_id IS NOT NULL
FROM unnest(CAST(%(left_ids)s AS text[]), CAST(%(right_ids)s AS text[]), CAST(%(labels)s AS boolean[]))
    AS labelled (left_id, right_id, is_same)
LEFT JOIN nearsim.document AS a ON a.collection_id = %(collection_id)s AND a.external_id = labelled.left_id
LEFT JOIN nearsim.document AS b ON b.collection_id = %(collection_id)s AND b.external_id = labelled.right_id
LEFT JOIN nearsim.verdict ON verdict.left_id = least(a.doc_id, b.doc_id)
    AND verdict.right_id = greatest(a.doc_id, b.doc_id) AND verdict.undone_at IS NULL
