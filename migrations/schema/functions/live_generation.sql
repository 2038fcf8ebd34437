CREATE FUNCTION nearsim.live_generation(
    collection_id integer, profile text DEFAULT NULL, unindexed_id bigint DEFAULT NULL)
RETURNS TABLE (generation_id integer, profile_name text, bands smallint, rows smallint,
    threshold double precision, min_shared_bands integer, recipe jsonb)
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    profile_names text[];
    collection_name text;
    chosen_profile text;
BEGIN
    -- If there are several profiles, default comes first; if none of them is named default, no profile is chosen.
    RETURN QUERY
        SELECT first.generation_id, first.profile, first.bands, first.rows,
            CAST(first.recipe #>> '{match,threshold}' AS double precision),
            CAST(first.recipe #>> '{match,min_shared_bands}' AS integer), first.recipe
        FROM (
            SELECT existing.*, count(*) OVER () AS profiles FROM nearsim_index.visible_profiles AS existing
            WHERE existing.collection_id = live_generation.collection_id
                AND existing.profile = coalesce(live_generation.profile, existing.profile)
            ORDER BY existing.profile <> 'default' LIMIT 1
        ) AS first
        WHERE first.generation_id IS NOT NULL AND (first.profiles = 1 OR first.profile = 'default');
    IF FOUND THEN
        RETURN;
    END IF;
    chosen_profile := coalesce(profile, nearsim.default_profile(live_generation.collection_id));
    SELECT array_agg(existing.name ORDER BY existing.name) INTO profile_names
    FROM nearsim.profile AS existing WHERE existing.collection_id = live_generation.collection_id;
    SELECT quote_literal(existing.name) INTO collection_name
    FROM nearsim.collection AS existing WHERE existing.collection_id = live_generation.collection_id;
    IF chosen_profile IS NULL AND cardinality(profile_names) > 1 THEN
        RAISE EXCEPTION 'collection % has several profiles; name one of: %', collection_name,
            array_to_string(profile_names, ', ') USING ERRCODE = 'ambiguous_parameter';
    ELSIF profile IS NOT NULL AND profile <> ALL (coalesce(profile_names, ARRAY['default'])) THEN
        RAISE EXCEPTION 'collection % has no profile %; existing profiles: %', collection_name, quote_literal(profile),
            coalesce(array_to_string(profile_names, ', '), 'none yet') USING ERRCODE = 'no_data_found';
    ELSIF unindexed_id IS NOT NULL THEN
        RAISE NOTICE 'document % is not indexed yet: collection % has no live index', unindexed_id, collection_name;
        RETURN;
    ELSIF NOT EXISTS (SELECT FROM nearsim.document WHERE document.collection_id = live_generation.collection_id) THEN
        RETURN;
    ELSIF chosen_profile IS NULL THEN
        RAISE EXCEPTION 'collection % has no profile; existing profiles: none yet', collection_name
            USING ERRCODE = 'no_data_found';
    END IF;
    RAISE EXCEPTION 'profile % of collection % has no live index yet', quote_literal(chosen_profile), collection_name
        USING ERRCODE = 'object_not_in_prerequisite_state';
END
$$;
COMMENT ON FUNCTION nearsim.live_generation(integer, text, bigint) IS
    'Internal (used by similar_to and other functions): the live generation of a collection''s profile, with parts of its recipe. The profile is the named one, the one named default, or the only one. No row for an empty collection. If no generation is live, raises a notice if a document is passed, otherwise an error';
