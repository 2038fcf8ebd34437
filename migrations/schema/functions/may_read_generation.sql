CREATE FUNCTION nearsim.may_read_generation(generation_id integer) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce((
        SELECT nearsim.may_read_collection(profile.collection_id)
        FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
        WHERE generation.generation_id = may_read_generation.generation_id), false);
END;
COMMENT ON FUNCTION nearsim.may_read_generation(integer) IS
    'Internal (used by the policies): whether the caller may read a generation; for security definer functions';
