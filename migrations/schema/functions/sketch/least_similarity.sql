CREATE FUNCTION nearsim.least_similarity(recipe jsonb) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN recipe #>> '{match,verify}' = 'bands' THEN 0
    WHEN nearsim.metric_of(recipe) = 'euclidean'
    THEN 1 / (1 + CAST(recipe #>> '{match,threshold}' AS double precision))
    ELSE CAST(recipe #>> '{match,threshold}' AS double precision) END;
COMMENT ON FUNCTION nearsim.least_similarity(jsonb) IS
    'Internal (used by similar_to and other functions): the lowest similarity of a pair under a recipe: its threshold, converted to a similarity if it is a distance; 0 if all candidates are pairs';
