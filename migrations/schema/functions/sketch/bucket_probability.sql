-- The formula of Datar, Immorlica, Indyk and Mirrokni (2004), with x = width / distance: the normal distribution between -x
-- and x, minus sqrt(2 / pi) (1 - exp(-x^2 / 2)) / x. Both are exp(-x^2 / 2) times a series in odd powers of x. No term of the
-- difference of the two series is negative, so the result is also exact for small x. From x = 9 on, the first term is 1. Terms
-- too small for double precision would raise an error and are left out.
CREATE FUNCTION nearsim.bucket_probability(ratio double precision) RETURNS double precision
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
COMMENT ON FUNCTION nearsim.bucket_probability(double precision) IS
    'Internal (used by collision_probability): the probability that two vectors share a bucket of projection, for a ratio of bucket width to distance';
