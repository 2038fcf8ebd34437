-- Documents that are deleted together with their collection are not captured: the collection's generations are deleted too, so
-- there is no index to update.
CREATE FUNCTION nearsim.capture_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id)
    SELECT before_rows.collection_id, before_rows.doc_id FROM before_rows JOIN nearsim.collection USING (collection_id);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_deleted() IS 'Trigger on document: captures deleted documents';

CREATE TRIGGER document_capture_deleted AFTER DELETE ON nearsim.document
    REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT EXECUTE FUNCTION nearsim.capture_deleted();
