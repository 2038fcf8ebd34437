-- All databases of a server share its roles. So the roles may already exist, or a session of another database may be creating
-- them at the same time.
CREATE FUNCTION nearsim.create_roles() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted text;
    is_superuser constant boolean := (SELECT rolsuper FROM pg_roles WHERE rolname = current_user);
BEGIN
    FOREACH wanted IN ARRAY ARRAY['nearsim_reader', 'nearsim_writer', 'nearsim_admin'] LOOP
        CONTINUE WHEN to_regrole(wanted) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            IF wanted = 'nearsim_admin' AND NOT is_superuser THEN
                -- The creator keeps its own rights on objects that are transferred to the role.
                EXECUTE format('GRANT nearsim_admin TO %I WITH %s', current_user,
                    CASE WHEN current_setting('server_version_num')::integer < 160000 THEN 'ADMIN OPTION'
                        ELSE 'INHERIT TRUE, SET TRUE' END);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN
            CONTINUE;
        END;
    END LOOP;
    PERFORM nearsim.grant_memberships();
END
$$;
COMMENT ON FUNCTION nearsim.create_roles() IS
    'Internal (used by nearsim access grant): creates the roles nearsim_reader, nearsim_writer and nearsim_admin if they do not exist';

-- Makes writers members of the readers, and administrators members of both. If another user created the roles and the current
-- user may not grant them, it does nothing.
CREATE FUNCTION nearsim.grant_memberships() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT inner_role, outer_role, how FROM (VALUES
            ('nearsim_reader', 'nearsim_writer', ''),
            ('nearsim_reader', 'nearsim_admin', ' WITH ADMIN OPTION'),
            ('nearsim_writer', 'nearsim_admin', ' WITH ADMIN OPTION')) AS wanted (inner_role, outer_role, how)
        WHERE num_nulls(to_regrole(inner_role), to_regrole(outer_role)) = 0 AND NOT EXISTS (
            SELECT FROM pg_auth_members
            WHERE roleid = to_regrole(inner_role) AND member = to_regrole(outer_role)
                AND (admin_option OR how = ''))
    LOOP
        BEGIN
            EXECUTE format('GRANT %I TO %I%s', given.inner_role, given.outer_role, given.how);
        -- internal_error: a session of another database granted it at the same time.
        EXCEPTION WHEN insufficient_privilege OR unique_violation OR internal_error THEN
            CONTINUE;
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.grant_memberships() IS
    'Internal (used by create_roles): makes nearsim_writer a member of nearsim_reader, and nearsim_admin a member of both with admin option';

CREATE FUNCTION nearsim.roles_exist() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
RETURN num_nulls(to_regrole('nearsim_reader'), to_regrole('nearsim_writer'), to_regrole('nearsim_admin')) = 0;
COMMENT ON FUNCTION nearsim.roles_exist() IS
    'Internal (used by grant_rights): whether the server has the roles nearsim_reader, nearsim_writer and nearsim_admin';
