-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
CREATE FUNCTION nearsim.pin_pair_by_doc_id(a bigint, b bigint, why text, by text DEFAULT current_user)
RETURNS nearsim.pair_verdict
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT nearsim.named_verdict(made)
    FROM nearsim.store_verdicts(ARRAY['pinned'], ARRAY[a], ARRAY[b], why, by) AS made;
END;
COMMENT ON FUNCTION nearsim.pin_pair_by_doc_id(bigint, bigint, text, text) IS
    'The same as pin_pair, for two documents named by their doc_ids';

CREATE FUNCTION nearsim.pin_pair(a text, b text, why text, by text DEFAULT current_user, collection text DEFAULT NULL)
RETURNS nearsim.pair_verdict
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT nearsim.named_verdict(made)
    FROM nearsim.documents_named(a, b, collection)
    CROSS JOIN LATERAL nearsim.store_verdicts(ARRAY['pinned'], ARRAY[a_id], ARRAY[b_id], why, by) AS made;
END;
COMMENT ON FUNCTION nearsim.pin_pair(text, text, text, text, text) IS
    'Pin two documents: from now on they are in one cluster, whether they are similar or not. Returns the verdict. Clusters follow when a worker or nearsim build next runs. Name the collection if several have both documents';
