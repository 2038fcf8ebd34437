CREATE FUNCTION nearsim.undo_verdict_by_doc_id(a bigint, b bigint, why text, by text DEFAULT current_user)
RETURNS nearsim.pair_verdict
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    undone nearsim.verdict;
BEGIN
    SELECT * INTO undone FROM nearsim.undo_current_verdicts(ARRAY[a], ARRAY[b], why, by);
    IF undone.verdict_id IS NULL THEN
        RAISE EXCEPTION 'documents % and % have no verdict to undo', a, b USING ERRCODE = 'no_data_found';
    END IF;
    RETURN nearsim.named_verdict(undone);
END
$$;
COMMENT ON FUNCTION nearsim.undo_verdict_by_doc_id(bigint, bigint, text, text) IS
    'The same as undo_verdict, for two documents named by their doc_ids';

CREATE FUNCTION nearsim.undo_verdict(a text, b text, why text, by text DEFAULT current_user, collection text DEFAULT NULL)
RETURNS nearsim.pair_verdict
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    undone nearsim.verdict;
BEGIN
    SELECT standing.* INTO undone
    FROM nearsim.documents_named(a, b, collection) AS named
    CROSS JOIN LATERAL nearsim.undo_current_verdicts(
        ARRAY[named.a_id], ARRAY[named.b_id], undo_verdict.why, undo_verdict.by) AS standing;
    IF undone.verdict_id IS NULL THEN
        RAISE EXCEPTION 'documents % and % have no verdict to undo', quote_literal(a), quote_literal(b)
            USING ERRCODE = 'no_data_found';
    END IF;
    RETURN nearsim.named_verdict(undone);
END
$$;
COMMENT ON FUNCTION nearsim.undo_verdict(text, text, text, text, text) IS
    'Undo the verdict on two documents. The verdict stays on record and is returned. Clusters follow when a worker or nearsim build next runs. Name the collection if several have both documents';
