CREATE FUNCTION nearsim.capture_members_before() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim_index.pending_event (generation_id, kind, doc_ids, cluster_ids, survive)
    SELECT generation_id, 'members', array_agg(doc_id), array_agg(cluster_id), array_agg(is_survivor)
    FROM before_rows GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_members_before() IS
    'Trigger: captures the members of clusters that a statement changed or deleted, in their state before it';
