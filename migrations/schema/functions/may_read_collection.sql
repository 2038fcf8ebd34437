CREATE FUNCTION nearsim.may_read_collection(collection_id integer) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT NOT nearsim.is_isolated()
        OR pg_has_role(nearsim.caller(), relowner, 'USAGE')
        OR EXISTS (SELECT FROM pg_roles WHERE rolname = nearsim.caller() AND rolbypassrls)
        OR EXISTS (
            SELECT FROM nearsim.collection_access AS access
            JOIN pg_roles ON rolname = access.role_name
            WHERE access.collection_id = may_read_collection.collection_id
                AND pg_has_role(nearsim.caller(), pg_roles.oid, 'USAGE'))
    FROM pg_class WHERE oid = CAST('nearsim.document' AS regclass);
END;
COMMENT ON FUNCTION nearsim.may_read_collection(integer) IS
    'Internal (used by the policies): whether the caller may read a collection; for security definer functions';
