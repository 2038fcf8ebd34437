-- The condition is explained in default_pairs.
CREATE VIEW nearsim.default_duplicates WITH (security_invoker = true) AS
SELECT duplicate.* FROM nearsim.duplicates AS duplicate
WHERE duplicate.profile = 'default' OR NOT EXISTS (
    SELECT FROM nearsim.profile AS other
    WHERE other.collection_id = duplicate.collection_id AND other.name <> duplicate.profile);

COMMENT ON VIEW nearsim.default_duplicates IS
    'Duplicates under the default profile of each collection: the profile named default, or the only one. A collection with several profiles, none of them named default, has no rows here. The columns are those of the view duplicates';
