-- The function reads only OLD, which the view computes from rows that the caller may see. NEW could name any rows; so could
-- OLD if somebody created this trigger on another table, which the first statement prevents.
CREATE FUNCTION nearsim.read_attached_texts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_RELID <> CAST('nearsim_index.attached_texts' AS regclass) THEN
        RAISE EXCEPTION 'this trigger belongs to nearsim_index.attached_texts' USING ERRCODE = 'insufficient_privilege';
    END IF;
    NEW := OLD;
    NEW.bodies := nearsim.source_texts(
        (SELECT attachment FROM nearsim_index.attachment WHERE attachment.collection_id = OLD.collection_id), OLD.external_ids);
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION nearsim.read_attached_texts() IS 'Trigger on attached_texts: reads texts in an attached table';

CREATE TRIGGER attached_texts_read INSTEAD OF UPDATE ON nearsim_index.attached_texts
    FOR EACH ROW EXECUTE FUNCTION nearsim.read_attached_texts();
