-- Only a row that the caller may see is updated, and OLD is that row; NEW.doc_id could be any. On another table OLD could
-- be, too.
CREATE FUNCTION nearsim.read_attached_text() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_RELID <> CAST('nearsim_index.attached_texts' AS regclass) THEN
        RAISE EXCEPTION 'this trigger belongs to nearsim_index.attached_texts' USING ERRCODE = 'insufficient_privilege';
    END IF;
    NEW := OLD;
    SELECT nearsim.source_text(attachment, external_id) INTO NEW.body
    FROM nearsim.document LEFT JOIN nearsim_index.attachment USING (collection_id)
    WHERE document.doc_id = OLD.doc_id;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION nearsim.read_attached_text() IS 'Trigger on attached_texts: reads a text in an attached table';

CREATE TRIGGER attached_texts_read INSTEAD OF UPDATE ON nearsim_index.attached_texts
    FOR EACH ROW EXECUTE FUNCTION nearsim.read_attached_text();
