CREATE FUNCTION nearsim.width_of(recipe jsonb) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN coalesce(nullif(CAST(recipe #>> '{sketch,width}' AS double precision), 0),
    4.25 * CAST(recipe #>> '{match,threshold}' AS double precision));
COMMENT ON FUNCTION nearsim.width_of(jsonb) IS
    'Internal (used by collision_probability): the bucket width of projection under a recipe';
