CREATE FUNCTION nearsim.capture_survivor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id, stage) VALUES (NEW.collection_id, NEW.doc_id, 'link');
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_survivor() IS
    'Trigger on survivor_pin: captures that the cluster of the document must be updated';

CREATE TRIGGER survivor_capture AFTER INSERT OR UPDATE ON nearsim.survivor_pin
    FOR EACH ROW EXECUTE FUNCTION nearsim.capture_survivor();
