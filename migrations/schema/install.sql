-- Writes to the parents of the generations' tables are captured too.
SELECT nearsim.create_capture_triggers(''), nearsim.restore_shared('similar_pair'), nearsim.restore_shared('cluster_member');
SELECT nearsim.create_lookup(1), nearsim.create_evidence(1);

-- Revokes the privileges that the database's default privileges gave: their author had other tables in mind.
DO $$
DECLARE
    command text;
BEGIN
    PERFORM nearsim.revoke_default_privileges(CAST(oid AS regclass)) FROM pg_catalog.pg_class
    WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
        AND relkind IN ('r', 'p', 'v', 'S') AND pg_catalog.pg_has_role(relowner, 'USAGE');
    FOR command IN
        SELECT format('REVOKE ALL ON ROUTINE %s FROM %s', CAST(pg_proc.oid AS regprocedure),
            coalesce(quote_ident(rolname), 'PUBLIC'))
        FROM pg_catalog.pg_proc
        CROSS JOIN LATERAL aclexplode(coalesce(proacl, acldefault('f', proowner))) AS given
        LEFT JOIN pg_catalog.pg_roles ON pg_roles.oid = given.grantee
        WHERE pronamespace = CAST('nearsim' AS regnamespace) AND given.grantee <> proowner
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
