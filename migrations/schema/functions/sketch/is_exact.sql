CREATE FUNCTION nearsim.is_exact(recipe jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN recipe #>> '{match,verify}' = 'exact';
COMMENT ON FUNCTION nearsim.is_exact(jsonb) IS
    'Internal (used by why, the view pairs and events): whether a recipe computes the similarity of its pairs from their features; if not, their similarity is an estimate';
