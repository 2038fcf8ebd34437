CREATE FUNCTION nearsim.create_lock_secret() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.lock_secret (generation_id) VALUES (NEW.generation_id);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.create_lock_secret() IS 'Trigger: creates the secret of a generation''s advisory locks';

CREATE TRIGGER generation_create_lock_secret AFTER INSERT ON nearsim.generation
    FOR EACH ROW EXECUTE FUNCTION nearsim.create_lock_secret();
