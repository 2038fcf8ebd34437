CREATE FUNCTION nearsim.capture_members_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.pending_event (generation_id, kind, doc_ids)
    SELECT generation_id, 'members', array_agg(doc_id) FROM after_rows GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_members_inserted() IS
    'Trigger: captures documents that a statement adds to a cluster';
