-- Triggers on pairs, signatures and members, on a generation's own tables and on their parents, note what each statement
-- did. Nothing is joined here: what cancels out is found when the transaction commits.
CREATE FUNCTION nearsim.capture_pairs_before() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.pending_event (generation_id, kind, left_ids, right_ids, similarities)
    SELECT generation_id, 'pairs_before', array_agg(left_id), array_agg(right_id), array_agg(similarity)
    FROM before_rows GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_pairs_before() IS 'Trigger: notes pairs that a statement removed, or changed, as they were';
