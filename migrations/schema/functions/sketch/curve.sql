CREATE FUNCTION nearsim.curve(bands integer, rows integer, min_shared_bands integer DEFAULT 1)
RETURNS TABLE (similarity double precision, probability double precision)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 21 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT point.similarity, nearsim.match_probability(point.similarity, bands, rows, min_shared_bands)
    FROM (SELECT step / CAST(20 AS double precision) AS similarity FROM generate_series(0, 20) AS step) AS point
    ORDER BY point.similarity;
END;
COMMENT ON FUNCTION nearsim.curve(integer, integer, integer) IS
    'The S-curve of a banding: match_probability for the similarities 0, 0.05, 0.1, ..., 1';

CREATE FUNCTION nearsim.curve(amplification text) RETURNS TABLE (similarity double precision, probability double precision)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 21 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT point.similarity, nearsim.match_probability(point.similarity, amplification)
    FROM (SELECT step / CAST(20 AS double precision) AS similarity FROM generate_series(0, 20) AS step) AS point
    ORDER BY point.similarity;
END;
COMMENT ON FUNCTION nearsim.curve(text) IS
    'The S-curve of an amplification such as and(4, or(4)): match_probability for the similarities 0, 0.05, 0.1, ..., 1';
