CREATE FUNCTION nearsim.collision_probability(recipe jsonb, similarity double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF recipe #>> '{sketch,family}' = 'rare' THEN
        RETURN similarity;
    END IF;
    CASE nearsim.metric_of(recipe)
        WHEN 'cosine' THEN
            RETURN 1 - acos(least(greatest(similarity, -1), 1)) / pi();
        WHEN 'euclidean' THEN
            RETURN CASE WHEN similarity <= 1e-300 THEN 0 WHEN similarity >= 1 THEN 1
                ELSE nearsim.bucket_probability(nearsim.width_of(recipe) / (1 / similarity - 1)) END;
        ELSE
            RETURN similarity;
    END CASE;
END
$$;
COMMENT ON FUNCTION nearsim.collision_probability(jsonb, double precision) IS
    'Internal (used by why_not): the probability that the sketches of two documents with this similarity agree in one position';
