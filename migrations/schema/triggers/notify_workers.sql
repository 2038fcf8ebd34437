CREATE FUNCTION nearsim.notify_workers() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NOTIFY nearsim;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.notify_workers() IS 'Trigger on probe: notifies workers of a lookup request';

CREATE TRIGGER probe_notify AFTER INSERT ON nearsim.probe
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.notify_workers();
