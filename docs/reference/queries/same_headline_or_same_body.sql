-- Pairs under any of several profiles: the same headline or the same body
SELECT left_external_id, right_external_id, profiles, similarities, highest_similarity
FROM nearsim.combined_pairs
WHERE collection = 'demo' AND profiles && ARRAY['default', 'headline', 'body']  -- use your own; @> for pairs under all of them
ORDER BY cardinality(profiles) DESC, highest_similarity DESC, left_id, right_id;
