CREATE FUNCTION nearsim.live_generations_of(
    collection_id integer, profiles text[], unindexed_id bigint DEFAULT NULL)
RETURNS TABLE (place bigint, generation_id integer, profile_name text, recipe jsonb)
LANGUAGE plpgsql STABLE ROWS 3 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF profiles IS NULL THEN
        RETURN QUERY
            SELECT row_number() OVER (ORDER BY existing.name <> 'default', existing.name COLLATE "C"), live.generation_id,
                existing.name, live.recipe
            FROM nearsim.profile AS existing JOIN nearsim.generation AS live USING (profile_id)
            WHERE existing.collection_id = live_generations_of.collection_id AND live.state = 'live';
        IF FOUND THEN
            RETURN;
        END IF;
    ELSIF cardinality(profiles) = 0 OR array_position(profiles, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'profiles is %: name profiles, or leave it out for all that are live', quote_literal(profiles)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- If none is live, live_generation raises its error or notice for a single profile.
    RETURN QUERY
        SELECT requested.place, live.generation_id, live.profile_name, live.recipe
        FROM (
            SELECT named.name, min(named.place) AS place
            FROM unnest(coalesce(profiles, ARRAY[NULL])) WITH ORDINALITY AS named (name, place) GROUP BY named.name
        ) AS requested
        CROSS JOIN LATERAL nearsim.live_generation(
            live_generations_of.collection_id, requested.name, unindexed_id) AS live;
END
$$;
COMMENT ON FUNCTION nearsim.live_generations_of(integer, text[], bigint) IS
    'Internal (used by similar_by_profiles and combined_clusters): the live generations of the named profiles, in the order of the names, or of all live profiles, the profile default first; if none is live, it does what live_generation does';
