-- By doc_id and by external_id.
CREATE FUNCTION nearsim.pin_pair(a bigint, b bigint, why text, by text DEFAULT current_user) RETURNS nearsim.verdict
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT nearsim.store_verdicts(ARRAY['pinned'], ARRAY[a], ARRAY[b], why, by);
END;
COMMENT ON FUNCTION nearsim.pin_pair(bigint, bigint, text, text) IS
    'Pin two documents: they stay in one cluster from now on, similar or not; returns the verdict';

CREATE FUNCTION nearsim.pin_pair(a text, b text, why text, by text DEFAULT current_user, collection text DEFAULT NULL)
RETURNS nearsim.verdict
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT nearsim.store_verdicts(ARRAY['pinned'], ARRAY[a_id], ARRAY[b_id], why, by)
    FROM nearsim.documents_named(a, b, collection);
END;
COMMENT ON FUNCTION nearsim.pin_pair(text, text, text, text, text) IS
    'pin_pair by external_id; name the collection if several have both documents';
