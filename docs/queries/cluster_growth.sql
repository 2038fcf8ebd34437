-- How the largest clusters grew, day by day
WITH largest AS (
    SELECT * FROM nearsim.clusters
    WHERE collection = 'demo' AND profile = 'default'  -- use your own
    ORDER BY documents DESC, cluster_id LIMIT 5
)
SELECT largest.cluster_id, largest.survivor_title, CAST(document.published_at AS date) AS day, count(*) AS added,
    sum(count(*)) OVER (PARTITION BY largest.cluster_id ORDER BY CAST(document.published_at AS date)) AS documents
FROM largest
JOIN nearsim.documents AS document USING (generation_id, cluster_id)
GROUP BY largest.cluster_id, largest.survivor_title, day
ORDER BY largest.cluster_id, day;
