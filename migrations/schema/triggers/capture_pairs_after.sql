CREATE FUNCTION nearsim.capture_pairs_after() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.pending_event (generation_id, kind, left_ids, right_ids, similarities)
    SELECT generation_id, 'pairs_after', array_agg(left_id), array_agg(right_id), array_agg(similarity)
    FROM after_rows WHERE NOT in_review GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_pairs_after() IS
    'Trigger: captures pairs that a statement inserted or updated, in their new state';
