-- Writes to the parents of a generation's tables are captured, too.
SELECT nearsim.create_capture_triggers('');

-- Nothing is indexed yet: the first generation compares itself with all documents.
INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL);

-- A user who may not create roles goes on as the owner; a warning says what is missing.
DO $$
BEGIN
    IF (SELECT rolsuper OR rolcreaterole FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        PERFORM nearsim.create_roles();
    END IF;
    PERFORM nearsim.grant_rights();
END
$$;
