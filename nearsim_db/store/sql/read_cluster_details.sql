-- The first members of some clusters: the survivor, then those never found alike with it, then the least similar. Relies on
-- the leaf's index on (cluster_id, is_survivor, doc_id) and on the primary keys.
WITH member AS MATERIALIZED (
    SELECT member.cluster_id, member.doc_id, member.is_survivor, signature.head_id, signature.numbers_digest
    FROM {cluster_member} AS member
    JOIN {signature} AS signature USING (doc_id)
    WHERE member.cluster_id = ANY(CAST(%(cluster_ids)s AS bigint[]))
        AND EXISTS (SELECT FROM nearsim.document WHERE document.doc_id = member.doc_id)
), survivor AS (
    SELECT DISTINCT ON (cluster_id) cluster_id, doc_id, head_id, numbers_digest
    FROM member ORDER BY cluster_id, is_survivor DESC, doc_id
), ranked AS (
    SELECT member.cluster_id, member.doc_id, member.doc_id = survivor.doc_id AS survives, likeness.similarity,
        member.numbers_digest <> survivor.numbers_digest AS numbers_differ,
        row_number() OVER (
            PARTITION BY member.cluster_id
            ORDER BY member.doc_id <> survivor.doc_id, likeness.similarity NULLS FIRST, member.doc_id
        ) AS place
    FROM member
    JOIN survivor USING (cluster_id)
    LEFT JOIN {similar_pair} AS pair ON pair.left_id = least(member.head_id, survivor.head_id)
        AND pair.right_id = greatest(member.head_id, survivor.head_id)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN member.head_id = survivor.head_id THEN 1 ELSE pair.similarity END
    ) AS likeness (similarity)
)
SELECT ranked.cluster_id, document.external_id, document.title, document.source,
    to_char(document.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), ranked.survives, ranked.similarity, ranked.numbers_differ
FROM ranked
JOIN nearsim.document USING (doc_id)
WHERE ranked.place <= %(members)s
ORDER BY ranked.cluster_id, ranked.place
