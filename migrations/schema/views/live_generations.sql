-- Live generations, with the parts of their recipes that other views need. Other views read partitions in a LATERAL subquery
-- that the planner does not pull up, because it has a constant ORDER BY, a GROUP BY or several SELECTs. So generation_id is a
-- parameter in the subquery, and partitions of other generations are never read.
CREATE VIEW nearsim.live_generations WITH (security_invoker = true) AS
SELECT generation.generation_id, profile.profile_id, profile.name AS profile,
    collection.collection_id, collection.name AS collection,
    CAST(generation.recipe #>> '{match,threshold}' AS double precision) AS threshold,
    generation.bands, generation.rows,
    CAST(generation.recipe #>> '{match,min_shared_bands}' AS integer) AS min_shared_bands,
    CAST(generation.recipe #>> '{match,bucket_limit}' AS integer) AS bucket_limit,
    nearsim.retention_of(generation.recipe) AS retained,
    generation.fingerprint, generation.recipe, generation.figures, generation.created_at, generation.live_at
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
WHERE generation.state = 'live';

COMMENT ON VIEW nearsim.live_generations IS
    'The live generation of each profile, with the parts of its recipe that other views use';
COMMENT ON COLUMN nearsim.live_generations.generation_id IS
    'Number of the generation. If it is 100,000,000 or more, it is also the suffix of the generation''s own tables, such as nearsim_index.band_100000007';
COMMENT ON COLUMN nearsim.live_generations.bands IS 'Number of bands of a sketch; NULL if it was not recorded';
COMMENT ON COLUMN nearsim.live_generations.rows IS 'Number of sketch positions per band; NULL if it was not recorded';
COMMENT ON COLUMN nearsim.live_generations.bucket_limit IS 'Maximum number of anchors of a bucket; 0 for no limit';
COMMENT ON COLUMN nearsim.live_generations.retained IS 'How long documents are kept in the index; NULL for unlimited';
COMMENT ON COLUMN nearsim.live_generations.figures IS 'Counts of the build';
COMMENT ON COLUMN nearsim.live_generations.created_at IS 'When the generation was created';
COMMENT ON COLUMN nearsim.live_generations.live_at IS 'When the generation became live; NULL if it was not recorded';
