CREATE FUNCTION nearsim.note_probe() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NOTIFY nearsim;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.note_probe() IS 'Trigger of probe: wakes the workers when a text is asked about';

CREATE TRIGGER probe_note AFTER INSERT ON nearsim.probe
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_probe();
