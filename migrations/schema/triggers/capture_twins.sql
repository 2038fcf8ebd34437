CREATE FUNCTION nearsim.capture_twins() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.pending_event (generation_id, kind, left_ids, right_ids)
    SELECT generation_id, CASE WHEN TG_NAME IN ('capture_insert', 'capture_update_to') THEN 'pairs_after' ELSE 'pairs_before' END,
        array_agg(head_id), array_agg(doc_id)
    FROM captured_rows WHERE head_id <> doc_id GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_twins() IS 'Trigger: captures twins and their heads, in their state before or after a statement';
