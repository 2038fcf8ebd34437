-- Ownership is transferred only from the caller, a superuser or nearsim_admin. If anybody else owns a part of the
-- installation, all of it stays with its owners.
CREATE FUNCTION nearsim.may_transfer_ownership(new_owner text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT pg_has_role(to_regrole(quote_ident(new_owner)),
            CASE WHEN current_setting('server_version_num')::integer < 160000 THEN 'MEMBER' ELSE 'SET' END)
        AND (SELECT bool_and(pg_has_role(nspowner, 'USAGE')) FROM pg_namespace
            WHERE nspname IN ('nearsim', 'nearsim_index'))
        AND NOT EXISTS (
            SELECT FROM (
                SELECT relowner FROM pg_class
                WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
                UNION SELECT proowner FROM pg_proc
                WHERE pronamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
            ) AS owned (owner)
            JOIN pg_roles ON pg_roles.oid = owner
            WHERE rolname NOT IN (current_user, new_owner, 'nearsim_admin') AND NOT rolsuper);
END;
COMMENT ON FUNCTION nearsim.may_transfer_ownership(text) IS
    'Internal (used by grant_rights): whether the caller may make a role the owner of everything in both schemas without taking objects from other owners';

CREATE FUNCTION nearsim.transfer_ownership(new_owner text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    command text;
BEGIN
    EXECUTE format('GRANT ALL ON SCHEMA nearsim, nearsim_index TO %I', new_owner);
    IF has_database_privilege(current_database(), 'CREATE') THEN
        EXECUTE format('ALTER SCHEMA nearsim OWNER TO %I', new_owner);
        EXECUTE format('ALTER SCHEMA nearsim_index OWNER TO %I', new_owner);
    END IF;
    FOR command IN
        SELECT format('ALTER %s %s OWNER TO %I', kind, name, new_owner) FROM (
            SELECT relowner, CAST(oid AS regclass)::text,
                CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END
            FROM pg_class
            WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
                AND relkind IN ('r', 'p', 'v', 'c', 'S')
                -- Sequences of columns follow their tables.
                AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype IN ('i', 'a') AND relkind = 'S')
            UNION ALL
            SELECT proowner, CAST(oid AS regprocedure)::text, 'ROUTINE'
            FROM pg_proc WHERE pronamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
        ) AS owned (owner, name, kind)
        WHERE owner <> to_regrole(quote_ident(new_owner))
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.transfer_ownership(text) IS
    'Internal (used by grant_rights): makes a role the owner of everything in both schemas';

-- Revokes the privileges that the database's default privileges gave to roles other than the owner. Nobody could use them
-- before the commit.
CREATE FUNCTION nearsim.revoke_default_privileges(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT coalesce(quote_ident(rolname), 'PUBLIC')
        FROM pg_class CROSS JOIN LATERAL aclexplode(relacl) AS given
        LEFT JOIN pg_roles ON pg_roles.oid = given.grantee
        WHERE pg_class.oid = relation AND given.grantee <> relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', relation, grantee);
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.revoke_default_privileges(regclass) IS
    'Internal (used by grant_partition_rights and schema init): revokes the privileges of everybody but the owner on a new table, view or sequence, in the transaction that creates it';

-- The function locks nearsim.document. A concurrent ENABLE ROW LEVEL SECURITY, which turns isolation on, waits for this lock,
-- and then also covers the tables that were granted while the lock was held.
CREATE FUNCTION nearsim.grant_partition_rights(generation_id integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    leaf record;
    own_function regprocedure;
    home constant integer := (
        SELECT profile.collection_id FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
        WHERE generation.generation_id = grant_partition_rights.generation_id);
BEGIN
    LOCK TABLE nearsim.document IN ACCESS SHARE MODE;
    FOR leaf IN
        SELECT format('nearsim_index.%I', parent.relname || '_' || grant_partition_rights.generation_id) AS name,
            own.relowner <> parent.relowner AS is_foreign, rolname AS owner,
            EXISTS (SELECT FROM pg_policy WHERE polrelid = own.oid) AS has_policy,
            pg_has_role(parent.relowner,
                CASE WHEN current_setting('server_version_num')::integer < 160000 THEN 'MEMBER' ELSE 'SET' END) AS may
        FROM pg_class AS parent
        JOIN pg_roles ON pg_roles.oid = parent.relowner
        JOIN pg_class AS own ON own.relnamespace = CAST('nearsim_index' AS regnamespace)
            AND own.relname = parent.relname || '_' || grant_partition_rights.generation_id
        WHERE parent.relnamespace = CAST('nearsim' AS regnamespace)
            AND parent.relname IN ('signature', 'band')
    LOOP
        IF NOT leaf.has_policy THEN
            EXECUTE format('CREATE POLICY granted ON %s FOR SELECT USING ((SELECT nearsim.may_see_collection(%L)))',
                leaf.name, home);
            EXECUTE format('ALTER TABLE %s %s ROW LEVEL SECURITY', leaf.name,
                CASE WHEN nearsim.is_isolated() THEN 'ENABLE' ELSE 'DISABLE' END);
            PERFORM nearsim.revoke_default_privileges(CAST(leaf.name AS regclass));
            PERFORM nearsim.withhold_statistics(CAST(leaf.name AS regclass));
        END IF;
        IF leaf.is_foreign AND leaf.may THEN
            EXECUTE format('ALTER TABLE %s OWNER TO %I', leaf.name, leaf.owner);
        END IF;
        IF nearsim.roles_exist() THEN
            EXECUTE format('GRANT ALL ON %s TO nearsim_admin', leaf.name);
            EXECUTE format('GRANT SELECT ON %s TO nearsim_reader, nearsim_writer', leaf.name);
        END IF;
    END LOOP;
    FOREACH own_function IN ARRAY ARRAY[
        nearsim.create_lookup(grant_partition_rights.generation_id),
        nearsim.create_evidence(grant_partition_rights.generation_id)]
    LOOP
        IF nearsim.roles_exist() THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO nearsim_reader, nearsim_writer, nearsim_admin', own_function);
        END IF;
        IF leaf.may THEN
            EXECUTE format('ALTER FUNCTION %s OWNER TO %I', own_function, leaf.owner);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.grant_partition_rights(integer) IS
    'Internal (used by every build): sets the owner and the privileges of a generation''s own tables, and restricts their statistics';
