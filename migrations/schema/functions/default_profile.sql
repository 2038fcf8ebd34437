CREATE FUNCTION nearsim.default_profile(collection_id integer) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN bool_or(profile.name = 'default') THEN 'default' WHEN count(*) = 1 THEN min(profile.name) END
        FROM nearsim.profile WHERE profile.collection_id = default_profile.collection_id);
END
$$;
COMMENT ON FUNCTION nearsim.default_profile(integer) IS
    'Internal (used by similar_to and other functions): the profile that is used if the caller names none: default, or the only one of the collection; NULL if there is none, or if there are several without one named default';
