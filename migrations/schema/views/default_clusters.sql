-- The condition is explained in default_pairs.
CREATE VIEW nearsim.default_clusters WITH (security_invoker = true) AS
SELECT cluster.* FROM nearsim.clusters AS cluster
WHERE cluster.profile = 'default' OR NOT EXISTS (
    SELECT FROM nearsim.profile AS other
    WHERE other.collection_id = cluster.collection_id AND other.name <> cluster.profile);

COMMENT ON VIEW nearsim.default_clusters IS
    'Clusters under the default profile of each collection: the profile named default, or the only one. A collection with several profiles, none of them named default, has no rows here. The columns are those of the view clusters';
