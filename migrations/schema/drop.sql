-- Drops everything, data included, except the schemas themselves and Alembic's version table. Raises an error while a
-- collection has an attached table, because the triggers of that table would stay behind.
DO $$
BEGIN
    IF EXISTS (SELECT FROM nearsim_index.attachment) THEN
        RAISE EXCEPTION 'there are collections that are attached to a table of an application'
            USING HINT = 'Detach each with: nearsim table detach COLLECTION [--keep]';
    END IF;
END
$$;

DO $$
BEGIN
    IF nearsim.roles_exist() THEN
        IF nearsim.may_transfer_ownership(current_user) THEN
            PERFORM nearsim.transfer_ownership(current_user);
        END IF;
        REVOKE ALL ON SCHEMA nearsim, nearsim_index FROM nearsim_reader, nearsim_writer, nearsim_admin;
        REVOKE ALL ON ALL TABLES IN SCHEMA nearsim, nearsim_index FROM nearsim_reader, nearsim_writer, nearsim_admin;
    END IF;
END
$$;

DO $$
DECLARE
    command text;
BEGIN
    FOREACH command IN ARRAY ARRAY(
        SELECT format('DROP %s IF EXISTS %s.%I CASCADE',
            CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
            CAST(relnamespace AS regnamespace), relname)
        FROM pg_catalog.pg_class
        WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
            AND relkind IN ('r', 'p', 'v', 'S', 'c') AND relname <> 'alembic_version'
        ORDER BY position(relkind IN 'vrpSc'))
    LOOP
        EXECUTE command;
    END LOOP;
    FOREACH command IN ARRAY ARRAY(
        SELECT format('DROP ROUTINE IF EXISTS %s CASCADE', CAST(oid AS regprocedure))
        FROM pg_catalog.pg_proc WHERE pronamespace = CAST('nearsim' AS regnamespace))
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

-- The roles stay if they have members, or if another database uses them.
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
