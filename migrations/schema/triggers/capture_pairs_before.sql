-- The triggers on pairs, signatures and cluster members, which partitions and parents have, capture the changes of each
-- statement. publish_events computes the net changes when the transaction commits.
CREATE FUNCTION nearsim.capture_pairs_before() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.pending_event (generation_id, kind, left_ids, right_ids, similarities)
    SELECT generation_id, 'pairs_before', array_agg(left_id), array_agg(right_id), array_agg(similarity)
    FROM before_rows WHERE NOT in_review GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_pairs_before() IS
    'Trigger: captures pairs that a statement deleted or updated, in their old state';
