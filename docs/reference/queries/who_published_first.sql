-- Which source published first, and how far behind the others were
SELECT first_source, source AS later_source, count(*) AS copies,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY delay) AS median_delay
FROM nearsim.first_publications
WHERE collection = 'demo' AND profile = 'default'  -- use your own
    AND first_elsewhere
GROUP BY first_source, later_source
ORDER BY copies DESC, first_source, later_source
LIMIT 20;
