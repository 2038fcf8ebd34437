-- This function is not STABLE, for the reason stated in named_verdict. Relies on collection_pkey and document_pkey.
CREATE FUNCTION nearsim.named_choice(made nearsim.survivor_pin) RETURNS nearsim.survivor_choice
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    named nearsim.survivor_choice;
BEGIN
    SELECT (made).*, place.name, kept.external_id, kept.title INTO named
    FROM nearsim.collection AS place
    JOIN nearsim.document AS kept ON kept.doc_id = made.doc_id
    WHERE place.collection_id = made.collection_id;
    RAISE NOTICE 'clusters follow the choice when a worker or nearsim build next runs';
    RETURN named;
END
$$;
COMMENT ON FUNCTION nearsim.named_choice(nearsim.survivor_pin) IS
    'Internal (used by pin_survivor and unpin_survivor): the choice of a document to keep, with the names of its document and collection; a notice says when clusters follow it';
