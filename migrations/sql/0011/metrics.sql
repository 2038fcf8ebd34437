-- What a recipe says of similarities. Under projection its threshold is a distance d, whose similarity is 1 / (1 + d).
CREATE FUNCTION nearsim.metric_of(recipe jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE recipe #>> '{sketch,family}'
    WHEN 'dart_minhash' THEN 'weighted_jaccard' WHEN 'hyperplane' THEN 'cosine' WHEN 'projection' THEN 'euclidean'
    ELSE 'jaccard' END;
COMMENT ON FUNCTION nearsim.metric_of(jsonb) IS
    'Part of why and the view pairs: what the similarities under a recipe are, jaccard, weighted_jaccard, cosine or euclidean';

CREATE FUNCTION nearsim.least_similarity(recipe jsonb) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN nearsim.metric_of(recipe) = 'euclidean'
    THEN 1 / (1 + CAST(recipe #>> '{match,threshold}' AS double precision))
    ELSE CAST(recipe #>> '{match,threshold}' AS double precision) END;
COMMENT ON FUNCTION nearsim.least_similarity(jsonb) IS
    'Part of similar_to and others: the similarity of two documents that are right at the threshold of a recipe';

-- Datar, Immorlica, Indyk and Mirrokni 2004, with x = width / distance: the normal distribution between -x and x, less
-- sqrt(2 / pi) (1 - exp(-x^2 / 2)) / x. Both as series in odd powers of x, under exp(-x^2 / 2): no term of their
-- difference is negative, so that it is exact for small x, too. From 9 on the distribution is 1. What is too small for a
-- double precision would be an error, and is left out.
CREATE FUNCTION nearsim.chance_of_bucket(ratio double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    square double precision;
    within double precision := ratio;
    lost double precision := ratio / 2;
    total double precision := ratio / 2;
    place integer := 1;
BEGIN
    IF ratio >= 9 THEN
        RETURN 1 - sqrt(2 / pi()) / ratio;
    ELSIF ratio < 1e-8 THEN
        RETURN ratio / sqrt(2 * pi());
    END IF;
    square := ratio * ratio;
    WHILE within > total * 1e-17 LOOP
        within := within * square / (2 * place + 1);
        lost := lost * square / (2 * place + 2);
        total := total + (within - lost);
        place := place + 1;
    END LOOP;
    RETURN sqrt(2 / pi()) * exp(-square / 2) * total;
END
$$;
COMMENT ON FUNCTION nearsim.chance_of_bucket(double precision) IS
    'Part of collision_probability: the probability that two vectors are in one bucket of projection, by how many times their distance it is wide';

-- By Newton's method from below, which never passes the answer, because the probability is concave.
CREATE FUNCTION nearsim.ratio_of_chance(chance double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ratio double precision := chance * sqrt(2 * pi());
    slope double precision;
    missing double precision;
BEGIN
    FOR step IN 1 .. 100 LOOP
        slope := CASE WHEN ratio < 1e-4 THEN 1 / sqrt(2 * pi())
            ELSE sqrt(2 / pi()) * (1 - exp(-least(ratio * ratio / 2, 99))) / (ratio * ratio) END;
        missing := (chance - nearsim.chance_of_bucket(ratio)) / slope;
        EXIT WHEN missing <= ratio * 1e-15;
        ratio := ratio + missing;
    END LOOP;
    RETURN ratio;
END
$$;
COMMENT ON FUNCTION nearsim.ratio_of_chance(double precision) IS
    'Part of estimate_under: how many times their distance a bucket is wide, by the probability, above 0 and below 1, that two vectors are in one';

CREATE FUNCTION nearsim.width_of(recipe jsonb) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN coalesce(nullif(CAST(recipe #>> '{sketch,width}' AS double precision), 0),
    4.25 * CAST(recipe #>> '{match,threshold}' AS double precision));
COMMENT ON FUNCTION nearsim.width_of(jsonb) IS
    'Part of collision_probability: how wide the buckets of projection are under a recipe';

CREATE FUNCTION nearsim.collision_probability(recipe jsonb, similarity double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CASE nearsim.metric_of(recipe)
        WHEN 'cosine' THEN
            RETURN 1 - acos(least(greatest(similarity, -1), 1)) / pi();
        WHEN 'euclidean' THEN
            RETURN CASE WHEN similarity <= 1e-300 THEN 0 WHEN similarity >= 1 THEN 1
                ELSE nearsim.chance_of_bucket(nearsim.width_of(recipe) / (1 / similarity - 1)) END;
        ELSE
            RETURN similarity;
    END CASE;
END
$$;
COMMENT ON FUNCTION nearsim.collision_probability(jsonb, double precision) IS
    'Part of why_not: the probability that two documents of a similarity agree in one position of their sketches under a recipe';
