-- When a collection is deleted, its profiles are deleted before their generations. The trigger on profile captures this case.
CREATE FUNCTION nearsim.capture_promotion() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.pending_event (generation_id, kind, collection_id, profile_id)
    SELECT OLD.generation_id, CASE WHEN TG_OP = 'UPDATE' AND NEW.state = 'live' THEN 'live' ELSE 'not_live' END,
        collection_id, profile_id
    FROM nearsim.profile WHERE profile_id = OLD.profile_id;
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION nearsim.capture_promotion() IS
    'Trigger: captures that a generation was promoted, retired or deleted';

CREATE TRIGGER generation_capture_promotion AFTER UPDATE OF state ON nearsim.generation
    FOR EACH ROW WHEN ((OLD.state = 'live') <> (NEW.state = 'live')) EXECUTE FUNCTION nearsim.capture_promotion();

CREATE TRIGGER generation_capture_delete BEFORE DELETE ON nearsim.generation
    FOR EACH ROW WHEN (OLD.state = 'live') EXECUTE FUNCTION nearsim.capture_promotion();
