-- Similar pairs whose numbers differ, by source: templates rather than republications
SELECT collection, profile, coalesce(left_source, '') AS left_source, coalesce(right_source, '') AS right_source,
    count(*) AS pairs, count(*) FILTER (WHERE numbers_differ) AS numbers_differ,
    round(100.0 * count(*) FILTER (WHERE numbers_differ) / count(*), 1) AS percent
FROM nearsim.pairs
WHERE similarity >= 0.8 AND are_heads
GROUP BY collection, profile, 3, 4
ORDER BY numbers_differ DESC, pairs DESC, left_source, right_source
LIMIT 20;
