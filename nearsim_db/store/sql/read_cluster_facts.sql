-- Every cluster by what makes it suspicious: how members compare with the survivor, how many were never found alike with it
-- (chained), how many have other numbers, sources and dates. Twins of the survivor are alike at 1. Where the survivor was
-- deleted, the first member stands in for it. Reads members, signatures and documents once, and pairs by key or all of them.
WITH member AS MATERIALIZED (
    SELECT member.cluster_id, member.doc_id, member.is_survivor, signature.head_id, signature.numbers_digest,
        document.source, CASE WHEN isfinite(document.published_at) THEN document.published_at END AS published_at
    FROM {cluster_member} AS member
    JOIN {signature} AS signature USING (doc_id)
    JOIN nearsim.document USING (doc_id)
), survivor AS (
    SELECT DISTINCT ON (cluster_id) cluster_id, doc_id, head_id, numbers_digest
    FROM member ORDER BY cluster_id, is_survivor DESC, doc_id
)
SELECT member.cluster_id, survivor.doc_id, count(*),
    count(*) FILTER (WHERE member.doc_id <> survivor.doc_id AND likeness.similarity IS NULL),
    avg(likeness.similarity) FILTER (WHERE member.doc_id <> survivor.doc_id),
    min(likeness.similarity) FILTER (WHERE member.doc_id <> survivor.doc_id),
    count(*) FILTER (WHERE member.numbers_digest <> survivor.numbers_digest),
    count(DISTINCT member.source),
    date_part('epoch', max(member.published_at) - min(member.published_at))
FROM member
JOIN survivor USING (cluster_id)
LEFT JOIN {similar_pair} AS pair ON pair.left_id = least(member.head_id, survivor.head_id)
    AND pair.right_id = greatest(member.head_id, survivor.head_id)
CROSS JOIN LATERAL (
    SELECT CASE WHEN member.head_id = survivor.head_id THEN 1 ELSE pair.similarity END
) AS likeness (similarity)
GROUP BY member.cluster_id, survivor.doc_id
HAVING count(*) > 1
