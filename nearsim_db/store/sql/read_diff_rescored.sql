-- Some pairs of both generations whose similarity differs, chosen by a hash of their documents: two documents, for how many
-- pairs they stand, and of each generation whether they are twins, their similarity and shared bands. After
-- create_diff_common.
SELECT chosen.left_id, chosen.right_id, chosen.pairs, chosen.live_left = chosen.live_right, chosen.live_similarity,
    live.shared_bands, chosen.new_left = chosen.new_right, chosen.new_similarity, new.shared_bands
FROM (
    SELECT * FROM diff_common
    WHERE abs(live_similarity - new_similarity) > {tolerance}
    ORDER BY hashint8extended(left_id, right_id), left_id, right_id
    LIMIT %(amount)s
) AS chosen
LEFT JOIN {live_pair} AS live ON live.left_id = chosen.live_left AND live.right_id = chosen.live_right
LEFT JOIN {new_pair} AS new ON new.left_id = chosen.new_left AND new.right_id = chosen.new_right
ORDER BY hashint8extended(chosen.left_id, chosen.right_id), chosen.left_id, chosen.right_id
