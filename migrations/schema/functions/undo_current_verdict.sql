-- Shared by pin_pair, veto_pair and undo_verdict. Runs as the caller, who needs rights on document and verdict.
CREATE FUNCTION nearsim.undo_current_verdict(a bigint, b bigint, why text, by text) RETURNS nearsim.verdict
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    undone nearsim.verdict;
    unknown bigint;
    collections integer;
BEGIN
    IF a = b THEN
        RAISE EXCEPTION 'a verdict is about two documents, not about % and itself', a
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF btrim(coalesce(why, '')) = '' OR btrim(coalesce(by, '')) = '' THEN
        RAISE EXCEPTION 'a verdict needs a reason (why) and an author (by)'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The lock serialises verdicts with a purge of either document.
    PERFORM FROM nearsim.document WHERE doc_id IN (a, b) ORDER BY doc_id FOR KEY SHARE;
    SELECT min(asked.doc_id) FILTER (WHERE document.doc_id IS NULL), count(DISTINCT document.collection_id)
    INTO unknown, collections
    FROM unnest(ARRAY[a, b]) AS asked (doc_id) LEFT JOIN nearsim.document USING (doc_id);
    IF unknown IS NOT NULL OR a IS NULL OR b IS NULL THEN
        RAISE EXCEPTION 'there is no document %', coalesce(CAST(unknown AS text), 'null')
            USING ERRCODE = 'no_data_found';
    END IF;
    IF collections > 1 THEN
        RAISE EXCEPTION 'documents % and % are in different collections, which are never compared', a, b
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Lock VERDICT of nearsim_db.store.driver.locks: serialises verdicts on one pair.
    PERFORM pg_advisory_xact_lock(28285, hashtext(least(a, b) || ' ' || greatest(a, b)));
    UPDATE nearsim.verdict AS standing
    SET undone_by = undo_current_verdict.by, undone_why = undo_current_verdict.why, undone_at = now()
    WHERE left_id = least(a, b) AND right_id = greatest(a, b) AND undone_at IS NULL
    RETURNING standing.* INTO undone;
    RETURN undone;
END
$$;
COMMENT ON FUNCTION nearsim.undo_current_verdict(bigint, bigint, text, text) IS
    'Internal (used by pin_pair, veto_pair and undo_verdict): undoes the current verdict on a pair; NULL if there is none';
