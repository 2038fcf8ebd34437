CREATE FUNCTION nearsim.caller() RETURNS name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
RETURN CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role')::name END;
COMMENT ON FUNCTION nearsim.caller() IS
    'Internal (used by may_read_collection): the calling role, also inside security definer functions';
