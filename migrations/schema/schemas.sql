-- The nodes of a Citus cluster get the objects that they need together with the band rows. Without this setting, the
-- coordinator would send them every object and everything that it refers to, including roles, which only a superuser may
-- change.
SELECT set_config('citus.enable_ddl_propagation', 'off', true)
WHERE current_setting('citus.enable_ddl_propagation', true) IS NOT NULL;

-- The schema nearsim exists before this runs, because it has Alembic's version table. nearsim_index has objects that only
-- nearsim uses: the partitions of the index, leases, slices of builds, and views that policies need. An administrator may have
-- created both schemas for a role that may not create schemas.
DO $$
BEGIN
    IF to_regnamespace('nearsim_index') IS NULL THEN
        CREATE SCHEMA nearsim_index;
    END IF;
    -- Only a schema's owner may comment on it, and another user may have created it.
    IF (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = 'nearsim') THEN
        COMMENT ON SCHEMA nearsim IS
            'Near-duplicate documents: read the views, call the functions that nearsim.functions lists, write to nearsim.document';
    END IF;
    IF (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = 'nearsim_index') THEN
        COMMENT ON SCHEMA nearsim_index IS
            'Internal: partitions of nearsim.signature, band, similar_pair and cluster_member; leases, slices of builds, attachments';
    END IF;
END
$$;
