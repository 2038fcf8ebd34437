-- Replace a generation's clusters; the keep policy chooses each survivor, ties going to the earlier and then the smaller
-- doc_id.
WITH gone AS (
    DELETE FROM {cluster_member} AS stored
    WHERE NOT EXISTS (SELECT FROM member WHERE member.doc_id = stored.doc_id)
)
INSERT INTO {cluster_member} AS stored (doc_id, cluster_id, is_survivor)
SELECT member.doc_id, member.cluster_id,
    row_number() OVER (PARTITION BY member.cluster_id ORDER BY
        CASE WHEN %(policy)s = 'source' THEN array_position(CAST(%(sources)s AS text[]), document.source) END NULLS LAST,
        CASE WHEN %(policy)s = 'longest'
            THEN coalesce(length(document.title), 0) + coalesce(length(document.body), 0) END DESC NULLS LAST,
        CASE WHEN %(policy)s = 'latest' THEN coalesce(document.published_at, document.created_at) END DESC NULLS LAST,
        coalesce(document.published_at, document.created_at), member.doc_id) = 1
FROM member LEFT JOIN nearsim.document USING (doc_id)
ON CONFLICT (doc_id) DO UPDATE SET cluster_id = excluded.cluster_id, is_survivor = excluded.is_survivor
WHERE (stored.cluster_id, stored.is_survivor)
    IS DISTINCT FROM (excluded.cluster_id, excluded.is_survivor)
