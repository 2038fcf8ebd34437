CREATE FUNCTION nearsim.store_verdicts(verdicts text[], ones bigint[], others bigint[], why text, by text)
RETURNS SETOF nearsim.verdict
LANGUAGE plpgsql ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored nearsim.verdict[];
BEGIN
    -- A verdict that somebody inserts by hand at the same moment is replaced in the next attempt.
    FOR attempt IN 1 .. 3 LOOP
        PERFORM FROM nearsim.undo_current_verdicts(ones, others, why, by);
        WITH inserted AS (
            INSERT INTO nearsim.verdict AS standing (collection_id, left_id, right_id, verdict, by, why)
            SELECT document.collection_id, least(one, other), greatest(one, other), wanted, store_verdicts.by,
                store_verdicts.why
            FROM unnest(verdicts, ones, others) AS pair (wanted, one, other)
            JOIN nearsim.document ON document.doc_id = one
            ON CONFLICT (left_id, right_id) WHERE undone_at IS NULL DO NOTHING
            RETURNING standing
        )
        SELECT array_agg(standing) INTO stored FROM inserted;
        RETURN QUERY SELECT * FROM unnest(stored);
        IF cardinality(stored) = cardinality(ones) THEN
            RETURN;
        END IF;
        SELECT array_agg(wanted), array_agg(one), array_agg(other) INTO verdicts, ones, others
        FROM unnest(verdicts, ones, others) AS pair (wanted, one, other)
        WHERE (least(one, other), greatest(one, other)) NOT IN (SELECT left_id, right_id FROM unnest(stored));
        IF ones IS NULL THEN
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'another session sets a verdict on these documents at the same time; try again'
        USING ERRCODE = 'serialization_failure';
END
$$;
COMMENT ON FUNCTION nearsim.store_verdicts(text[], bigint[], bigint[], text, text) IS
    'Internal (used by pin_pair, veto_pair and the review desk): stores a verdict on each pair and replaces the pair''s current verdict';
