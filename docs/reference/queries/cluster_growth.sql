-- How the largest clusters grew, day by day
WITH largest AS (
    SELECT * FROM nearsim.clusters
    WHERE collection = 'demo' AND profile = 'default'  -- use your own, here and below
    ORDER BY documents DESC, cluster_id LIMIT 5
), added AS (
    SELECT cluster_id, CAST(published_at AT TIME ZONE 'UTC' AS date) AS day, count(*) AS added  -- days of this time zone
    FROM nearsim.documents
    WHERE collection = 'demo' AND profile = 'default' AND cluster_id IN (SELECT cluster_id FROM largest)
    GROUP BY cluster_id, day
)
SELECT cluster_id, survivor_title, day, added,
    sum(added) OVER (PARTITION BY cluster_id ORDER BY day) AS documents
FROM largest JOIN added USING (cluster_id)
ORDER BY cluster_id, day;
