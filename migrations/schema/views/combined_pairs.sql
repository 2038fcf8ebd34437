-- Pairs of all live profiles of a collection. Groups by every column that a condition may name, so that conditions are applied
-- before the grouping. The view pairs selects the live generations; its comments describe the indexes.
CREATE VIEW nearsim.combined_pairs WITH (security_invoker = true) AS
SELECT pair.collection, pair.collection_id, pair.left_id, pair.right_id, pair.left_external_id, pair.right_external_id,
    pair.left_title, pair.right_title, pair.verdict,
    array_agg(pair.profile ORDER BY pair.profile COLLATE "C") AS profiles,
    jsonb_object_agg(pair.profile, pair.similarity) AS similarities,
    max(pair.similarity) AS highest_similarity, min(pair.similarity) AS lowest_similarity,
    bool_and(pair.verified) AS verified
FROM nearsim.pairs AS pair
GROUP BY pair.collection_id, pair.left_id, pair.right_id, pair.collection, pair.left_external_id, pair.right_external_id,
    pair.left_title, pair.right_title, pair.verdict;

COMMENT ON VIEW nearsim.combined_pairs IS
    'Pairs under all live profiles of a collection: one row for each pair, with the profiles under which it is a pair. profiles && ARRAY[''headline'', ''body''] selects pairs under at least one of the two profiles, profiles @> ARRAY[''headline'', ''body''] pairs under both, and NOT profiles && ARRAY[''headline''] pairs under other profiles only';
COMMENT ON COLUMN nearsim.combined_pairs.left_id IS 'doc_id of the left document, the smaller of the two';
COMMENT ON COLUMN nearsim.combined_pairs.right_id IS 'doc_id of the right document, the larger of the two';
COMMENT ON COLUMN nearsim.combined_pairs.profiles IS 'Names of the profiles under which the documents are a pair, sorted';
COMMENT ON COLUMN nearsim.combined_pairs.similarities IS
    'Similarity under each profile, by profile name, as in similarities ->> ''headline''; 1 for documents with the same features';
COMMENT ON COLUMN nearsim.combined_pairs.highest_similarity IS 'The highest of these similarities';
COMMENT ON COLUMN nearsim.combined_pairs.lowest_similarity IS 'The lowest of these similarities';
COMMENT ON COLUMN nearsim.combined_pairs.verified IS 'Whether all of these similarities are verified; false if any is an estimate';
