-- Where roles cannot be made everything stays as it is for the owner, and a warning says what to do.
DO $$
BEGIN
    IF (SELECT rolsuper OR rolcreaterole FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        PERFORM nearsim.create_roles();
    END IF;
    PERFORM nearsim.grant_rights();
END
$$;
