-- This function is not STABLE, because the documents may be younger than the snapshot of the statement that stores the
-- verdict. Relies on collection_pkey and document_pkey.
CREATE FUNCTION nearsim.named_verdict(made nearsim.verdict) RETURNS nearsim.pair_verdict
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    named nearsim.pair_verdict;
BEGIN
    SELECT (made).*, place.name, l.external_id, r.external_id, l.title, r.title INTO named
    FROM nearsim.collection AS place
    JOIN nearsim.document AS l ON l.doc_id = made.left_id
    JOIN nearsim.document AS r ON r.doc_id = made.right_id
    WHERE place.collection_id = made.collection_id;
    RAISE NOTICE 'clusters follow the verdict when a worker or nearsim build next runs';
    RETURN named;
END
$$;
COMMENT ON FUNCTION nearsim.named_verdict(nearsim.verdict) IS
    'Internal (used by pin_pair, veto_pair and undo_verdict): a verdict, with the names of its documents and collection; a notice says when clusters follow it';
