CREATE FUNCTION nearsim.store_verdict(verdict text, a bigint, b bigint, why text, by text) RETURNS nearsim.verdict
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made nearsim.verdict;
BEGIN
    -- A verdict may be inserted by hand at the same moment; then that one is replaced.
    FOR attempt IN 1 .. 3 LOOP
        PERFORM nearsim.undo_current_verdict(a, b, why, by);
        INSERT INTO nearsim.verdict AS standing (collection_id, left_id, right_id, verdict, by, why)
        SELECT document.collection_id, least(a, b), greatest(a, b), store_verdict.verdict, store_verdict.by, store_verdict.why
        FROM nearsim.document WHERE doc_id = a
        ON CONFLICT (left_id, right_id) WHERE undone_at IS NULL DO NOTHING
        RETURNING standing.* INTO made;
        IF FOUND THEN
            RETURN made;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'another session sets a verdict on these documents at the same time; try again'
        USING ERRCODE = 'serialization_failure';
END
$$;
COMMENT ON FUNCTION nearsim.store_verdict(text, bigint, bigint, text, text) IS
    'Internal (used by pin_pair and veto_pair): stores a verdict on a pair, replacing the current one';
