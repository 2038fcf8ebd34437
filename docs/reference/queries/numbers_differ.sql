-- Similar pairs whose numbers differ, by source: templates rather than republications
SELECT coalesce(left_source, '') AS left_source, coalesce(right_source, '') AS right_source,
    count(*) AS pairs, count(*) FILTER (WHERE numbers_differ) AS numbers_differ,
    round(100.0 * count(*) FILTER (WHERE numbers_differ) / count(*), 1) AS percent
FROM nearsim.pairs
WHERE collection = 'demo' AND profile = 'default'  -- use your own
    AND similarity >= 0.8 AND are_heads
GROUP BY 1, 2
ORDER BY numbers_differ DESC, pairs DESC, 1, 2
LIMIT 20;
