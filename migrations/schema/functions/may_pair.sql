CREATE FUNCTION nearsim.may_pair(recipe jsonb, one uuid, other uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN coalesce(recipe #>> '{match,across}', 'none') = 'none' AND coalesce(recipe #>> '{match,within}', 'none') = 'none'
        AND coalesce(recipe #>> '{match,within_days}', '0') = '0'
    OR nearsim.exclusion_of(recipe, one, other) IS NULL;
COMMENT ON FUNCTION nearsim.may_pair(jsonb, uuid, uuid) IS
    'Internal (used by similar_to): whether match.within, match.within_days and match.across of the recipe allow documents with these feature digests to be a pair';
