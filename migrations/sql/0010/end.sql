DO $$
DECLARE
    gone record;
BEGIN
    FOR gone IN
        SELECT format('DROP POLICY %I ON %s', polname, CAST(polrelid AS pg_catalog.regclass)) AS policy,
            format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', CAST(polrelid AS pg_catalog.regclass)) AS security
        FROM pg_catalog.pg_policy JOIN pg_catalog.pg_class ON pg_class.oid = polrelid
        WHERE relnamespace = CAST('nearsim' AS pg_catalog.regnamespace)
    LOOP
        EXECUTE gone.policy;
        EXECUTE gone.security;
    END LOOP;
    IF nearsim.have_roles() THEN
        IF nearsim.may_hand_over(current_user) THEN
            PERFORM nearsim.hand_over(current_user);
        END IF;
        REVOKE ALL ON SCHEMA nearsim FROM nearsim_reader, nearsim_writer, nearsim_admin;
        REVOKE ALL ON ALL TABLES IN SCHEMA nearsim FROM nearsim_reader, nearsim_writer, nearsim_admin;
        REVOKE ALL ON ALL SEQUENCES IN SCHEMA nearsim FROM nearsim_reader, nearsim_writer, nearsim_admin;
        REVOKE ALL ON ALL ROUTINES IN SCHEMA nearsim FROM nearsim_reader, nearsim_writer, nearsim_admin;
        GRANT EXECUTE ON ALL ROUTINES IN SCHEMA nearsim TO PUBLIC;
    END IF;
END
$$;
DROP FUNCTION nearsim.set_isolation(boolean), nearsim.adopt_leaves(integer), nearsim.grant_rights(),
    nearsim.grant_reading(), nearsim.grant_writing(), nearsim.hand_over(text), nearsim.may_hand_over(text),
    nearsim.create_roles(), nearsim.join_roles(), nearsim.have_roles();
-- The roles stay where another database, or a member, still needs them.
DO $$
DECLARE
    ours constant name[] := ARRAY['nearsim_reader', 'nearsim_writer', 'nearsim_admin'];
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_auth_members
        WHERE pg_catalog.pg_get_userbyid(roleid) = ANY (ours)
            AND pg_catalog.pg_get_userbyid(member) <> ALL (ours || current_user))
    THEN
        DROP ROLE IF EXISTS nearsim_admin, nearsim_writer, nearsim_reader;
    END IF;
EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege OR object_in_use THEN
    RETURN;
END
$$;
