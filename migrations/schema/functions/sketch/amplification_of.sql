CREATE FUNCTION nearsim.amplification_of(recipe jsonb, bands integer, rows integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN coalesce(recipe #>> '{match,amplification}',
    CASE WHEN CAST(recipe #>> '{match,min_shared_bands}' AS integer) = 1 THEN format('or(%s', bands)
        ELSE format('at_least(%s, %s', recipe #>> '{match,min_shared_bands}', bands) END
    || CASE WHEN rows > 1 THEN format(', and(%s)', rows) ELSE '' END || ')');
COMMENT ON FUNCTION nearsim.amplification_of(jsonb, integer, integer) IS
    'Internal (used by why_not and the view profiles): the candidate rule of a recipe as an amplification';
