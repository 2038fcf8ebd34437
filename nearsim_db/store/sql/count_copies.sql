-- Pairs of documents by their two sources, the smaller name first: how many, how often the document of each was published
-- first and how long the other took (median), how often both at once, and how many rows there are in all; of one source with
-- itself every pair is of the first kind. These are the stored pairs, and each twin with its head: not every twin with every
-- other. Reads pairs, signatures and documents.
WITH pair AS (
    SELECT left_id, right_id FROM {similar_pair}
    UNION ALL
    SELECT head_id, doc_id FROM {signature} WHERE head_id <> doc_id
), dated AS MATERIALIZED (
    SELECT
        CASE WHEN ordered.is_so THEN a.source ELSE b.source END COLLATE "C" AS one,
        CASE WHEN ordered.is_so THEN b.source ELSE a.source END COLLATE "C" AS other,
        CASE WHEN a.source IS NOT DISTINCT FROM b.source THEN abs(later.seconds)
            WHEN ordered.is_so THEN later.seconds ELSE - later.seconds END AS delay
    FROM pair
    JOIN nearsim.document AS a ON a.doc_id = pair.left_id
    JOIN nearsim.document AS b ON b.doc_id = pair.right_id
    CROSS JOIN LATERAL (
        SELECT coalesce(a.source COLLATE "C" <= b.source COLLATE "C", b.source IS NULL)
    ) AS ordered (is_so)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN isfinite(a.published_at) AND isfinite(b.published_at)
            THEN date_part('epoch', b.published_at - a.published_at) END
    ) AS later (seconds)
)
SELECT one, other, count(*),
    count(*) FILTER (WHERE delay > 0), percentile_cont(0.5) WITHIN GROUP (ORDER BY delay) FILTER (WHERE delay > 0),
    count(*) FILTER (WHERE delay < 0), percentile_cont(0.5) WITHIN GROUP (ORDER BY - delay) FILTER (WHERE delay < 0),
    count(*) FILTER (WHERE delay = 0), count(*) OVER ()
FROM dated
GROUP BY one, other
ORDER BY count(*) DESC, one, other
LIMIT %(amount)s
