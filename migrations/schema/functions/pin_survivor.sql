-- The functions that take a doc_id and an external_id have different names, so that no integer external_id is taken for a
-- doc_id.
CREATE FUNCTION nearsim.pin_survivor_by_doc_id(document bigint, why text, by text DEFAULT current_user)
RETURNS nearsim.survivor_choice
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored nearsim.survivor_pin;
BEGIN
    PERFORM nearsim.require_reason('the choice of a document to keep', why, by);
    -- The lock on the document prevents a purge from deleting it before the choice is committed.
    INSERT INTO nearsim.survivor_pin AS chosen (collection_id, doc_id, by, why)
    SELECT locked.collection_id, locked.doc_id, pin_survivor_by_doc_id.by, pin_survivor_by_doc_id.why
    FROM (SELECT * FROM nearsim.document AS own WHERE own.doc_id = pin_survivor_by_doc_id.document FOR KEY SHARE) AS locked
    RETURNING chosen.* INTO stored;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no document %', coalesce(CAST(document AS text), 'null') USING ERRCODE = 'no_data_found';
    END IF;
    RETURN nearsim.named_choice(stored);
END
$$;
COMMENT ON FUNCTION nearsim.pin_survivor_by_doc_id(bigint, text, text) IS
    'The same as pin_survivor, for a document named by its doc_id';

CREATE FUNCTION nearsim.pin_survivor(
    document text, why text, by text DEFAULT current_user, collection text DEFAULT NULL)
RETURNS nearsim.survivor_choice
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT nearsim.pin_survivor_by_doc_id(nearsim.document_named(document, collection), why, by);
END;
COMMENT ON FUNCTION nearsim.pin_survivor(text, text, text, text) IS
    'Make a document the one that its cluster keeps from now on, whatever the keep policy chooses. If several documents of a cluster were chosen, the newest choice counts. Returns the choice. Clusters follow when a worker or nearsim build next runs. Name the collection if several have such a document';

CREATE FUNCTION nearsim.unpin_survivor_by_doc_id(document bigint, why text, by text DEFAULT current_user)
RETURNS nearsim.survivor_choice
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    undone nearsim.survivor_pin;
BEGIN
    PERFORM nearsim.require_reason('undoing the choice of a document to keep', why, by);
    UPDATE nearsim.survivor_pin AS chosen
    SET undone_by = unpin_survivor_by_doc_id.by, undone_why = unpin_survivor_by_doc_id.why, undone_at = now()
    WHERE chosen.doc_id = document AND chosen.undone_at IS NULL
        AND chosen.pin_id = (
            SELECT max(pin_id) FROM nearsim.survivor_pin AS pin WHERE pin.doc_id = document AND pin.undone_at IS NULL)
    RETURNING chosen.* INTO undone;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'document % was not chosen to be kept', coalesce(CAST(document AS text), 'null')
            USING ERRCODE = 'no_data_found';
    END IF;
    RETURN nearsim.named_choice(undone);
END
$$;
COMMENT ON FUNCTION nearsim.unpin_survivor_by_doc_id(bigint, text, text) IS
    'The same as unpin_survivor, for a document named by its doc_id';

CREATE FUNCTION nearsim.unpin_survivor(
    document text, why text, by text DEFAULT current_user, collection text DEFAULT NULL)
RETURNS nearsim.survivor_choice
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT nearsim.unpin_survivor_by_doc_id(nearsim.document_named(document, collection), why, by);
END;
COMMENT ON FUNCTION nearsim.unpin_survivor(text, text, text, text) IS
    'Undo the newest choice of a document as the one to keep. The choice stays on record, but an earlier choice or the keep policy counts again. Returns the choice. Clusters follow when a worker or nearsim build next runs. Name the collection if several have such a document';
