CREATE FUNCTION nearsim.may_see_generation(generation_id integer) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF row_security_active(CAST('nearsim.document' AS regclass)) THEN
        RETURN EXISTS (
            SELECT FROM nearsim_index.granted_generations AS granted
            WHERE granted.generation_id = may_see_generation.generation_id);
    END IF;
    RETURN EXISTS (
        SELECT FROM nearsim.generation WHERE generation.generation_id = may_see_generation.generation_id);
END
$$;
COMMENT ON FUNCTION nearsim.may_see_generation(integer) IS
    'Internal (used by functions that read partitions): whether a generation exists and current_user may see it';
