-- Newton's method from below, which never overshoots because the probability is concave.
CREATE FUNCTION nearsim.width_ratio_of_probability(chance double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ratio double precision := chance * sqrt(2 * pi());
    slope double precision;
    missing double precision;
BEGIN
    FOR step IN 1 .. 100 LOOP
        slope := CASE WHEN ratio < 1e-4 THEN 1 / sqrt(2 * pi())
            ELSE sqrt(2 / pi()) * (1 - exp(-least(ratio * ratio / 2, 99))) / (ratio * ratio) END;
        missing := (chance - nearsim.bucket_probability(ratio)) / slope;
        EXIT WHEN missing <= ratio * 1e-15;
        ratio := ratio + missing;
    END LOOP;
    RETURN ratio;
END
$$;
COMMENT ON FUNCTION nearsim.width_ratio_of_probability(double precision) IS
    'Internal (used by estimate_under): the ratio of bucket width to distance at which two vectors share a bucket with the given probability, which must be above 0 and below 1';
