CREATE FUNCTION nearsim.capture_truncated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_truncated() IS
    'Trigger on document: after a TRUNCATE, captures that every index must be compared with all documents';

CREATE TRIGGER document_capture_truncated AFTER TRUNCATE ON nearsim.document
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.capture_truncated();
