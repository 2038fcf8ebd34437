-- The generations that answer, with what the other views need to know of their recipes. Those views read partitions in a
-- LATERAL subquery that is not pulled up (it has a constant ORDER BY, a GROUP BY or more than a select), so that
-- generation_id is a parameter there and the partitions of all other generations are never executed.
CREATE VIEW nearsim.live_generations WITH (security_invoker = true) AS
SELECT generation.generation_id, profile.profile_id, profile.name AS profile,
    collection.collection_id, collection.name AS collection,
    CAST(generation.recipe #>> '{match,threshold}' AS double precision) AS threshold,
    generation.bands, generation.rows,
    CAST(generation.recipe #>> '{match,min_shared_bands}' AS integer) AS min_shared_bands,
    CAST(generation.recipe #>> '{match,bucket_limit}' AS integer) AS bucket_limit,
    make_interval(secs => CAST(extract(epoch FROM
        CAST(nullif(generation.recipe #>> '{retain,age}', 'none') AS interval)) AS double precision)) AS retained,
    generation.fingerprint, generation.recipe, generation.figures, generation.created_at, generation.live_at
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
WHERE generation.state = 'live' AND NOT collection.temporary;

COMMENT ON VIEW nearsim.live_generations IS
    'The generation that answers for each profile, with the parts of its recipe that the other views rely on';
COMMENT ON COLUMN nearsim.live_generations.generation_id IS 'Number of the generation; its own tables end in it, as nearsim_index.band_7';
COMMENT ON COLUMN nearsim.live_generations.profile_id IS 'Number of the profile';
COMMENT ON COLUMN nearsim.live_generations.profile IS 'Name of the profile';
COMMENT ON COLUMN nearsim.live_generations.collection_id IS 'Number of the collection';
COMMENT ON COLUMN nearsim.live_generations.collection IS 'Name of the collection';
COMMENT ON COLUMN nearsim.live_generations.threshold IS
    'Similarity from which two documents are a pair; for projection the largest distance';
COMMENT ON COLUMN nearsim.live_generations.bands IS 'How many bands a sketch is cut into';
COMMENT ON COLUMN nearsim.live_generations.rows IS 'How many values of the sketch make one band';
COMMENT ON COLUMN nearsim.live_generations.min_shared_bands IS
    'How many bands two documents must share to be compared; 1 where the recipe has an amplification instead';
COMMENT ON COLUMN nearsim.live_generations.bucket_limit IS 'How many anchors a bucket has; 0 for no limit';
COMMENT ON COLUMN nearsim.live_generations.retained IS 'How long documents stay in the index; NULL for good';
COMMENT ON COLUMN nearsim.live_generations.fingerprint IS 'SHA-256 of all that decides sketches, bands and pairs';
COMMENT ON COLUMN nearsim.live_generations.recipe IS 'The whole recipe, every default spelled out';
COMMENT ON COLUMN nearsim.live_generations.figures IS 'What the build counted';
COMMENT ON COLUMN nearsim.live_generations.created_at IS 'When the generation was made';
COMMENT ON COLUMN nearsim.live_generations.live_at IS 'Since when it answers';
