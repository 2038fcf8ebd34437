-- Duplicates per source and day, and how many of them another source published first
SELECT source, CAST(published_at AT TIME ZONE 'UTC' AS date) AS day,  -- days of this time zone
    count(*) AS duplicates,
    count(*) FILTER (WHERE doc_id IN (
        SELECT doc_id FROM nearsim.first_publications
        WHERE collection = 'demo' AND profile = 'default'  -- use your own, here and below
            AND first_elsewhere
    )) AS first_elsewhere
FROM nearsim.duplicates
WHERE collection = 'demo' AND profile = 'default'
GROUP BY source, day
ORDER BY duplicates DESC, day, source
LIMIT 20;
