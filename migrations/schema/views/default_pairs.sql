-- The profile that functions choose if none is named: default, or the only one of the collection. The condition names columns
-- of live generations only, so that it is evaluated once for each of these. Relies on profile_name_key.
CREATE VIEW nearsim.default_pairs WITH (security_invoker = true) AS
SELECT pair.* FROM nearsim.pairs AS pair
WHERE pair.profile = 'default' OR NOT EXISTS (
    SELECT FROM nearsim.profile AS other
    WHERE other.collection_id = pair.collection_id AND other.name <> pair.profile);

COMMENT ON VIEW nearsim.default_pairs IS
    'Pairs under the default profile of each collection, with the columns of pairs: the profile named default, or the only one. A collection with several profiles and none named default has no rows';
