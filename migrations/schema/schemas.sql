-- Alembic's version table is in nearsim, so that schema exists before this runs.
DO $$
BEGIN
    -- Only a schema's owner may comment on it; it may have been created for the user by somebody else.
    IF (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = 'nearsim') THEN
        COMMENT ON SCHEMA nearsim IS
            'Near-duplicate documents: read the views, call what nearsim.functions lists, write nearsim.document';
    END IF;
END
$$;
