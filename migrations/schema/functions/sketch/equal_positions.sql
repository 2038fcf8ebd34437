-- The estimate of these families is the fraction of equal positions.
CREATE FUNCTION nearsim.equal_positions(recipe jsonb, estimate double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN recipe #>> '{sketch,family}' IN ('fast_similarity', 'minhash')
    THEN CAST(round(estimate * CAST(recipe #>> '{sketch,k}' AS integer)) AS integer) END;
COMMENT ON FUNCTION nearsim.equal_positions(jsonb, double precision) IS
    'Internal (used by why): the number of positions in which two sketches agree, by their estimate; NULL for families whose sketches have no positions, or whose metric is not jaccard';
