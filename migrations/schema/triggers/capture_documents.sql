CREATE FUNCTION nearsim.capture_written() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id, revision) SELECT collection_id, doc_id, revision FROM after_rows;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_written() IS 'Trigger on document: captures inserted and updated documents';

CREATE TRIGGER document_capture_inserted AFTER INSERT ON nearsim.document
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT EXECUTE FUNCTION nearsim.capture_written();

CREATE TRIGGER document_capture_updated AFTER UPDATE ON nearsim.document
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT EXECUTE FUNCTION nearsim.capture_written();
