-- Pairs of one document
SELECT right_external_id AS external_id, right_title AS title, right_source AS source, similarity, numbers_differ
FROM nearsim.pairs
WHERE collection = 'demo' AND profile = 'default' AND left_external_id = 'story-036'  -- use your own
UNION ALL
SELECT left_external_id, left_title, left_source, similarity, numbers_differ
FROM nearsim.pairs
WHERE collection = 'demo' AND profile = 'default' AND right_external_id = 'story-036'
ORDER BY similarity DESC, external_id;
