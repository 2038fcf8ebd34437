-- The dispatcher, not this trigger, determines the generations to update: when this transaction commits, there may be new
-- generations that it does not see.
CREATE FUNCTION nearsim.capture_verdicts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id, stage)
    SELECT DISTINCT collection_id, doc_id, 'link'
    FROM changed CROSS JOIN LATERAL (VALUES (left_id), (right_id)) AS ends (doc_id);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_verdicts() IS
    'Trigger on verdict: captures that the clusters of both documents must be updated';

CREATE TRIGGER verdict_capture_inserted AFTER INSERT ON nearsim.verdict
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION nearsim.capture_verdicts();
CREATE TRIGGER verdict_capture_updated AFTER UPDATE ON nearsim.verdict
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION nearsim.capture_verdicts();
