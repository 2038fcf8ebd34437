-- The default profile is the one that functions choose if the caller names none: default, or the only one of the collection.
-- The condition names only columns of live generations, so that it is evaluated once for each live generation. Relies on
-- profile_name_key.
CREATE VIEW nearsim.default_pairs WITH (security_invoker = true) AS
SELECT pair.* FROM nearsim.pairs AS pair
WHERE pair.profile = 'default' OR NOT EXISTS (
    SELECT FROM nearsim.profile AS other
    WHERE other.collection_id = pair.collection_id AND other.name <> pair.profile);

COMMENT ON VIEW nearsim.default_pairs IS
    'Pairs under the default profile of each collection: the profile named default, or the only one. A collection with several profiles, none of them named default, has no rows here. The columns are those of the view pairs';
