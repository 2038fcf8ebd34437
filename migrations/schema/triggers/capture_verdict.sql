-- A generation may exist when this transaction commits that it does not see now, so the dispatcher finds the
-- generations.
CREATE FUNCTION nearsim.capture_verdict() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id, stage)
    VALUES (NEW.collection_id, NEW.left_id, 'link'), (NEW.collection_id, NEW.right_id, 'link');
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_verdict() IS
    'Trigger on verdict: captures that the clusters of both documents must be updated';

CREATE TRIGGER verdict_capture AFTER INSERT OR UPDATE ON nearsim.verdict
    FOR EACH ROW EXECUTE FUNCTION nearsim.capture_verdict();
