CREATE FUNCTION nearsim.capture_generation(generation_id integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT (
        SELECT collection.temporary
        FROM nearsim.generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
        WHERE generation.generation_id = capture_generation.generation_id)
    THEN
        PERFORM nearsim.create_capture_triggers('_' || capture_generation.generation_id);
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.capture_generation(integer) IS
    'Internal (used by every build): creates the capture triggers on a generation''s own tables, unless its collection is temporary';
