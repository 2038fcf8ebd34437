-- Shared by pin_pair, veto_pair, undo_verdict and the review desk. Runs as the caller, who needs rights on document and
-- verdict. The arrays have an entry for each pair.
CREATE FUNCTION nearsim.undo_current_verdicts(ones bigint[], others bigint[], why text, by text)
RETURNS SETOF nearsim.verdict
LANGUAGE plpgsql ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    refused record;
BEGIN
    SELECT one INTO refused FROM unnest(ones, others) AS pair (one, other) WHERE one = other LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a verdict is about two documents, not about % and itself', refused.one
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM nearsim.require_reason('a verdict', why, by);
    -- These locks on the documents prevent a purge from deleting them before the verdicts are committed.
    PERFORM FROM nearsim.document WHERE doc_id = ANY (ones || others) ORDER BY doc_id FOR KEY SHARE;
    SELECT one, other, first.doc_id IS NULL OR second.doc_id IS NULL AS is_unknown,
        least(CASE WHEN first.doc_id IS NULL THEN one END, CASE WHEN second.doc_id IS NULL THEN other END) AS unknown
    INTO refused
    FROM unnest(ones, others) AS pair (one, other)
    LEFT JOIN nearsim.document AS first ON first.doc_id = one
    LEFT JOIN nearsim.document AS second ON second.doc_id = other
    WHERE first.collection_id = second.collection_id IS NOT TRUE LIMIT 1;
    IF refused.is_unknown THEN
        RAISE EXCEPTION 'there is no document %', coalesce(CAST(refused.unknown AS text), 'null')
            USING ERRCODE = 'no_data_found';
    ELSIF FOUND THEN
        RAISE EXCEPTION 'documents % and % are in different collections, which are never compared', refused.one, refused.other
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The lock VERDICT of nearsim_db.store.driver.locks, because of which verdicts on the same pair are set one after the
    -- other. The locks are taken in order, so that two sessions cannot deadlock.
    PERFORM pg_advisory_xact_lock(28285, key)
    FROM (
        SELECT DISTINCT hashtext(least(one, other) || ' ' || greatest(one, other)) AS key
        FROM unnest(ones, others) AS pair (one, other) ORDER BY key
    ) AS keys;
    RETURN QUERY
        UPDATE nearsim.verdict AS standing
        SET undone_by = undo_current_verdicts.by, undone_why = undo_current_verdicts.why, undone_at = now()
        FROM unnest(ones, others) AS pair (one, other)
        WHERE standing.left_id = least(one, other) AND standing.right_id = greatest(one, other) AND undone_at IS NULL
        RETURNING standing.*;
END
$$;
COMMENT ON FUNCTION nearsim.undo_current_verdicts(bigint[], bigint[], text, text) IS
    'Internal (used by pin_pair, veto_pair, undo_verdict and the review desk): undoes the current verdicts on pairs, and returns these verdicts';
