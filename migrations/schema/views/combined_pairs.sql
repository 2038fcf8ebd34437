-- Pairs of all live profiles of a collection together. All that a condition may name is grouped by, so that the condition is
-- put to the pairs before they are grouped; the view pairs keeps to live generations and to the indexes it tells of.
CREATE VIEW nearsim.combined_pairs WITH (security_invoker = true) AS
SELECT pair.collection, pair.collection_id, pair.left_id, pair.right_id, pair.left_external_id, pair.right_external_id,
    pair.left_title, pair.right_title, pair.verdict,
    array_agg(pair.profile ORDER BY pair.profile COLLATE "C") AS profiles,
    jsonb_object_agg(pair.profile, pair.similarity) AS similarities,
    max(pair.similarity) AS highest_similarity, min(pair.similarity) AS lowest_similarity
FROM nearsim.pairs AS pair
GROUP BY pair.collection_id, pair.left_id, pair.right_id, pair.collection, pair.left_external_id, pair.right_external_id,
    pair.left_title, pair.right_title, pair.verdict;

COMMENT ON VIEW nearsim.combined_pairs IS
    'Two documents that are a pair under any live profile of their collection, once, with the profiles under which they are: profiles && ARRAY[''headline'', ''body''] is either, profiles @> ARRAY[''headline'', ''body''] is both, and NOT profiles && ARRAY[''headline''] is no pair under that one';
COMMENT ON COLUMN nearsim.combined_pairs.collection IS 'Name of the collection';
COMMENT ON COLUMN nearsim.combined_pairs.collection_id IS 'Number of the collection';
COMMENT ON COLUMN nearsim.combined_pairs.left_id IS 'The smaller doc_id';
COMMENT ON COLUMN nearsim.combined_pairs.right_id IS 'The larger doc_id';
COMMENT ON COLUMN nearsim.combined_pairs.left_external_id IS 'external_id of the left document';
COMMENT ON COLUMN nearsim.combined_pairs.right_external_id IS 'external_id of the right document';
COMMENT ON COLUMN nearsim.combined_pairs.left_title IS 'Title of the left document';
COMMENT ON COLUMN nearsim.combined_pairs.right_title IS 'Title of the right document';
COMMENT ON COLUMN nearsim.combined_pairs.verdict IS 'pinned or vetoed by a person; NULL where nothing was decided';
COMMENT ON COLUMN nearsim.combined_pairs.profiles IS 'Names of the profiles under which they are a pair, sorted';
COMMENT ON COLUMN nearsim.combined_pairs.similarities IS
    'Verified similarity under each of these profiles by its name, as similarities ->> ''headline''; 1 for documents with the same features';
COMMENT ON COLUMN nearsim.combined_pairs.highest_similarity IS 'The highest of these similarities';
COMMENT ON COLUMN nearsim.combined_pairs.lowest_similarity IS 'The lowest of these similarities';
