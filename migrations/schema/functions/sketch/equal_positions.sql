-- In these families, the estimate is the fraction of positions in which the sketches are equal.
CREATE FUNCTION nearsim.equal_positions(recipe jsonb, estimate double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN recipe #>> '{sketch,family}' IN ('fast_similarity', 'minhash')
    THEN CAST(round(estimate * CAST(recipe #>> '{sketch,k}' AS integer)) AS integer) END;
COMMENT ON FUNCTION nearsim.equal_positions(jsonb, double precision) IS
    'Internal (used by why): the number of positions in which two sketches have the same value, computed from their estimate; NULL unless the family is fast_similarity or minhash';
