-- Relies on the key of similar_pair and on its index on right_id.
CREATE VIEW nearsim_index.pair_ends WITH (security_invoker = true) AS
SELECT left_id AS doc_id, right_id AS other_id, pair.* FROM nearsim.similar_pair AS pair
UNION ALL
SELECT right_id, left_id, pair.* FROM nearsim.similar_pair AS pair;

COMMENT ON VIEW nearsim_index.pair_ends IS
    'Internal (used by queries for the pairs of certain documents): nearsim.similar_pair with two rows for each pair, one for each of its documents';
COMMENT ON COLUMN nearsim_index.pair_ends.doc_id IS 'One of the two heads';
COMMENT ON COLUMN nearsim_index.pair_ends.other_id IS 'The other head of the pair';
