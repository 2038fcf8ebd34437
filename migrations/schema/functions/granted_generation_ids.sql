CREATE FUNCTION nearsim.granted_generation_ids() RETURNS integer[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(SELECT granted.generation_id FROM nearsim_index.granted_generations AS granted);
END
$$;
COMMENT ON FUNCTION nearsim.granted_generation_ids() IS
    'Internal (used by the policies): the generations of the collections that were granted to current_user';
