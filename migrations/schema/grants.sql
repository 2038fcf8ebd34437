-- If the user may not create roles, the user remains the owner, and a warning names the missing roles. Only the roles and
-- their memberships are sent to the nodes of a Citus cluster.
DO $$
BEGIN
    IF (SELECT rolsuper OR rolcreaterole FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        PERFORM set_config('citus.enable_ddl_propagation', 'on', true)
        WHERE current_setting('citus.enable_ddl_propagation', true) IS NOT NULL;
        PERFORM nearsim.create_roles();
        PERFORM set_config('citus.enable_ddl_propagation', 'off', true)
        WHERE current_setting('citus.enable_ddl_propagation', true) IS NOT NULL;
    END IF;
    PERFORM nearsim.grant_rights();
END
$$;
