-- Under match.across the last five bytes of a digest are of the value of the field (nearsim_db/similarity/across.py).
CREATE FUNCTION nearsim.may_pair(recipe jsonb, one uuid, other uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN coalesce(recipe #>> '{match,across}', 'none') = 'none'
    OR right(CAST(one AS text), 10) <> right(CAST(other AS text), 10);
COMMENT ON FUNCTION nearsim.may_pair(jsonb, uuid, uuid) IS
    'Internal (used by why_not and similar_to): whether documents with these feature digests may be a pair, as they have different values of the field match.across of the recipe';
