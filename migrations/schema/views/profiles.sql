-- Every profile with its live generation or, if none is live, its newest generation. Counts are computed only if a query
-- selects them.
CREATE VIEW nearsim.profiles WITH (security_invoker = true) AS
SELECT collection.name AS collection, profile.name AS profile, collection.collection_id, profile.profile_id,
    generation.generation_id, generation.state, generation.stage,
    CAST(generation.recipe #>> '{match,threshold}' AS double precision) AS threshold,
    generation.bands, generation.rows,
    CAST(generation.recipe #>> '{match,min_shared_bands}' AS integer) AS min_shared_bands,
    CAST(generation.recipe #>> '{match,bucket_limit}' AS integer) AS bucket_limit,
    coalesce(generation.expected_recall, (SELECT 1 - sum(chosen.term) FROM (
        SELECT CASE WHEN few = 0 THEN 1 ELSE exp(
                sum(ln(CAST(generation.bands - few + step AS double precision) / step))) END
            * alike.band ^ few * (1 - alike.band) ^ (generation.bands - few) AS term
        FROM generate_series(0, CAST(generation.recipe #>> '{match,min_shared_bands}' AS integer) - 1) AS few
        LEFT JOIN LATERAL generate_series(1, few) AS step ON true
        GROUP BY few
    ) AS chosen)) AS expected_recall,
    (SELECT count(*) FROM nearsim.document WHERE document.collection_id = collection.collection_id) AS documents,
    CAST(generation.figures ->> 'buckets' AS bigint) AS buckets,
    CAST(generation.figures ->> 'largest_bucket' AS bigint) AS largest_bucket,
    CAST(generation.figures ->> 'buckets_over_limit' AS bigint) AS buckets_over_limit,
    CAST(generation.figures ->> 'links_left_out' AS bigint) AS links_left_out,
    profile.created_at, generation.live_at, generation.figures, generation.fingerprint, generation.recipe,
    nearsim.amplification_of(generation.recipe, generation.bands, generation.rows) AS amplification,
    CAST(generation.figures ->> 'buckets_counted_at' AS timestamptz) AS buckets_counted_at
FROM nearsim.profile
JOIN nearsim.collection USING (collection_id)
LEFT JOIN LATERAL (
    SELECT * FROM nearsim.generation WHERE generation.profile_id = profile.profile_id
    ORDER BY generation.state = 'live' DESC, generation.created_at DESC, generation.generation_id DESC LIMIT 1
) AS generation ON true
LEFT JOIN LATERAL (
    SELECT CAST(generation.recipe #>> '{match,threshold}' AS double precision) ^ generation.rows AS band
) AS alike ON true;

COMMENT ON VIEW nearsim.profiles IS
    'All profiles, with their recipe, their live generation and the counts of its build. Counts of buckets are as of buckets_counted_at; nearsim.buckets has the present ones';
COMMENT ON COLUMN nearsim.profiles.generation_id IS 'The live generation, or the newest generation if none is live; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.state IS 'State of that generation; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.stage IS 'Stage of its build; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.threshold IS 'Minimum similarity of a pair; for projection the maximum distance; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.bands IS 'Number of bands of a sketch; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.rows IS 'Number of sketch positions per band; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.min_shared_bands IS
    'Number of bands that candidates must share; 1 if the recipe has an amplification instead; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.bucket_limit IS 'Maximum number of anchors of a bucket; 0 for no limit; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.expected_recall IS
    'Probability that two documents exactly at the threshold become candidates; it is higher for more similar documents; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.documents IS 'Number of documents in the collection';
COMMENT ON COLUMN nearsim.profiles.buckets IS 'Number of buckets at buckets_counted_at; NULL before the first count';
COMMENT ON COLUMN nearsim.profiles.largest_bucket IS 'Number of members of the largest bucket at buckets_counted_at; NULL before the first count';
COMMENT ON COLUMN nearsim.profiles.buckets_over_limit IS 'Number of buckets over the bucket limit at buckets_counted_at; NULL before the first count';
COMMENT ON COLUMN nearsim.profiles.links_left_out IS
    'Number of pairs of members that were not compared because of the bucket limit, summed over buckets, at buckets_counted_at; NULL before the first count';
COMMENT ON COLUMN nearsim.profiles.created_at IS 'When the profile was created';
COMMENT ON COLUMN nearsim.profiles.live_at IS 'When the generation became live; NULL if it never did';
COMMENT ON COLUMN nearsim.profiles.figures IS 'All counts of the build; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.fingerprint IS 'SHA-256 of everything that determines sketches, bands and pairs; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.recipe IS 'The complete recipe, including defaults; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.amplification IS
    'The rule by which shared bands make two documents candidates, written from the outside in: or(40, and(3)) means at least one of 40 bands of 3 rows; NULL if the profile has no generation';
COMMENT ON COLUMN nearsim.profiles.buckets_counted_at IS
    'When the build counted the buckets, which workers do not count again; NULL before the first count';
