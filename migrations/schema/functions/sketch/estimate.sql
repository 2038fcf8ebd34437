CREATE FUNCTION nearsim.estimate(a bytea, b bytea, bytes_per_position integer DEFAULT 4) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    width constant integer := bytes_per_position;
    length constant integer := octet_length(a);
BEGIN
    IF length <> octet_length(b) THEN
        RAISE EXCEPTION 'sketches of % and % bytes cannot be compared; they are of different recipes',
            length, octet_length(b) USING ERRCODE = 'invalid_parameter_value';
    ELSIF width < 1 OR length = 0 OR length % width <> 0 THEN
        RAISE EXCEPTION 'a sketch of % bytes does not fit % bytes_per_position', length, width
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN (
        SELECT count(*) / CAST(length / width AS double precision)
        FROM generate_series(1, length, width) AS place
        WHERE substr(a, place, width) = substr(b, place, width));
END
$$;
COMMENT ON FUNCTION nearsim.estimate(bytea, bytea, integer) IS
    'The fraction of positions in which two sketches of the same recipe agree. It is the estimated similarity for minhash, fast_similarity and dart_minhash; why() returns the estimate for every family. bytes_per_position is 8 for minhash with prime32, 1 for hyperplane, and 4 otherwise';
