CREATE FUNCTION nearsim.is_isolated() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT relrowsecurity FROM pg_class WHERE oid = CAST('nearsim.document' AS regclass);
END;
COMMENT ON FUNCTION nearsim.is_isolated() IS 'Internal (used by grant_rights): whether isolation is on';
