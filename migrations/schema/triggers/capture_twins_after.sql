CREATE FUNCTION nearsim.capture_twins_after() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.pending_event (generation_id, kind, left_ids, right_ids)
    SELECT generation_id, 'pairs_after', array_agg(head_id), array_agg(doc_id)
    FROM after_rows WHERE head_id <> doc_id GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_twins_after() IS 'Trigger: captures twins and their heads after a statement';
