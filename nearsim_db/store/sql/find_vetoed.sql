-- Which of some documents, and which of some clusters by a member, were ever vetoed with another, packed as eight bytes each.
-- Relies on the leaf's index on cluster_id and on verdict_left and verdict_right.
SELECT coalesce(string_agg(DISTINCT int8send(found.id), ''), '')
FROM (
    SELECT doc_id, doc_id AS id FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS asked (doc_id)
    UNION ALL
    SELECT doc_id, cluster_id FROM {cluster_member} WHERE cluster_id = ANY(CAST(%(cluster_ids)s AS bigint[]))
) AS found
WHERE EXISTS (
        SELECT FROM nearsim.verdict
        WHERE left_id = found.doc_id AND collection_id = %(collection_id)s AND verdict = 'vetoed')
    OR EXISTS (
        SELECT FROM nearsim.verdict
        WHERE right_id = found.doc_id AND collection_id = %(collection_id)s AND verdict = 'vetoed')
