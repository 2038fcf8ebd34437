CREATE FUNCTION nearsim.note_truncated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.note_truncated() IS
    'Trigger on document: notes that every index has to be compared with its documents';

CREATE TRIGGER document_note_truncated AFTER TRUNCATE ON nearsim.document
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_truncated();
