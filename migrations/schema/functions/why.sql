-- Relies on the partitions' keys, reached through the parents by generation_id, and on verdict_one_current.
CREATE FUNCTION nearsim.why(a bigint, b bigint, profile text DEFAULT NULL) RETURNS SETOF nearsim.pair_evidence
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off AS $$
DECLARE
    first_id constant bigint := least(a, b);
    second_id constant bigint := greatest(a, b);
    live record;
    metric text;
BEGIN
    SELECT * INTO STRICT live FROM nearsim.live_generation(nearsim.common_collection(a, b), profile);
    metric := nearsim.metric_of(live.recipe);
    RETURN QUERY
        SELECT first_id, second_id, l.external_id, r.external_id, live.profile_name, live.generation_id,
            twins.are OR pair.left_id IS NOT NULL, twins.are,
            CASE WHEN twins.are THEN 1 ELSE pair.similarity END, CAST(said.estimate AS real),
            CASE WHEN twins.are AND metric = 'jaccard' THEN l.feature_count ELSE pair.intersection_size END,
            CASE WHEN twins.are AND metric = 'jaccard' THEN l.feature_count ELSE pair.union_size END,
            CAST(cardinality(said.bands) AS smallint), said.bands, l.numbers_digest <> r.numbers_digest,
            nearsim.numbers_missing(numbers.left_ones, numbers.right_ones),
            nearsim.numbers_missing(numbers.right_ones, numbers.left_ones),
            pair.verified_at, live.threshold, live.recipe, verdict.verdict, verdict.by, verdict.why,
            coalesce(l.cluster_id = r.cluster_id, false),
            CASE WHEN twins.are AND metric = 'euclidean' THEN 0 ELSE pair.distance END
        FROM nearsim.indexed_document(live.generation_id, first_id) AS l
        CROSS JOIN nearsim.indexed_document(live.generation_id, second_id) AS r
        LEFT JOIN nearsim.compare_sketches(live.generation_id, first_id, second_id) AS said ON true
        LEFT JOIN LATERAL (
            SELECT stored.* FROM nearsim.similar_pair AS stored
            WHERE stored.generation_id = live.generation_id AND stored.left_id = least(l.head_id, r.head_id)
                AND stored.right_id = greatest(l.head_id, r.head_id) LIMIT 1
        ) AS pair ON true
        LEFT JOIN nearsim.verdict
            ON verdict.left_id = first_id AND verdict.right_id = second_id AND verdict.undone_at IS NULL
        CROSS JOIN LATERAL (SELECT coalesce(said.are_twins, false) AS are) AS twins
        -- Texts that are not indexed yet would give other numbers than numbers_differ compares.
        LEFT JOIN LATERAL (
            SELECT nearsim.numbers_of(first_id, live.recipe) AS left_ones,
                nearsim.numbers_of(second_id, live.recipe) AS right_ones
            WHERE NOT (l.is_behind OR r.is_behind) OFFSET 0
        ) AS numbers ON true;
END
$$;
COMMENT ON FUNCTION nearsim.why(bigint, bigint, text) IS
    'The evidence for two documents as a pair, the smaller doc_id on the left: scores, shared bands (from 0), differing numbers (numbers_only_left and numbers_only_right are NULL while a text is newer than the index), verdict and recipe. similarity is NULL beside estimate for documents that are no pair: the command nearsim why computes it from the texts. is_pair says whether they are a pair; if not, why_not() explains it';

CREATE FUNCTION nearsim.why(a text, b text, profile text DEFAULT NULL, collection text DEFAULT NULL)
RETURNS SETOF nearsim.pair_evidence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.why(
        nearsim.document_named(a, collection), nearsim.document_named(b, collection), profile);
END
$$;
COMMENT ON FUNCTION nearsim.why(text, text, text, text) IS
    'why by external_id; name the collection if several have both documents';
