-- Duplicates per source and day
SELECT source, CAST(published_at AS date) AS day, count(*) AS duplicates,
    count(*) FILTER (WHERE source IS DISTINCT FROM survivor_source) AS from_other_sources
FROM nearsim.duplicates
WHERE collection = 'demo' AND profile = 'default'  -- use your own
GROUP BY source, day
ORDER BY duplicates DESC, day, source
LIMIT 20;
