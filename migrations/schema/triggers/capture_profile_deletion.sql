CREATE FUNCTION nearsim.capture_profile_deletion() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.pending_event (generation_id, kind, collection_id, profile_id)
    SELECT generation_id, 'not_live', OLD.collection_id, OLD.profile_id
    FROM nearsim.generation WHERE profile_id = OLD.profile_id AND state = 'live';
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION nearsim.capture_profile_deletion() IS
    'Trigger: captures the deletion of a profile''s live generation';

CREATE TRIGGER profile_capture_delete BEFORE DELETE ON nearsim.profile
    FOR EACH ROW EXECUTE FUNCTION nearsim.capture_profile_deletion();
