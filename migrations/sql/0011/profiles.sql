-- The view of 0006, with what was written down of the recall, and with amplifications.
CREATE OR REPLACE VIEW nearsim.profiles WITH (security_invoker = true) AS
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
    nearsim.amplification_of(generation.recipe, generation.bands, generation.rows) AS amplification
FROM nearsim.profile
JOIN nearsim.collection USING (collection_id)
LEFT JOIN LATERAL (
    SELECT * FROM nearsim.generation WHERE generation.profile_id = profile.profile_id
    ORDER BY generation.state = 'live' DESC, generation.generation_id DESC LIMIT 1
) AS generation ON true
LEFT JOIN LATERAL (
    SELECT CAST(generation.recipe #>> '{match,threshold}' AS double precision) ^ generation.rows AS band
) AS alike ON true
WHERE NOT collection.temporary;

COMMENT ON COLUMN nearsim.profiles.min_shared_bands IS
    'How many bands two documents must share to be compared; 1 where the recipe has an amplification instead';
COMMENT ON COLUMN nearsim.profiles.expected_recall IS
    'Probability that two documents right at the threshold share the bands that they need to be compared; more alike ones do more often';
COMMENT ON COLUMN nearsim.profiles.amplification IS
    'Which shared bands make two documents candidates, from the outside in: or(40, and(3)) is any of 40 bands of 3 rows';
COMMENT ON COLUMN nearsim.live_generations.min_shared_bands IS
    'How many bands two documents must share to be compared; 1 where the recipe has an amplification instead';
