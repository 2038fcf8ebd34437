-- Asking, and waiting for what a worker answers.
CREATE FUNCTION nearsim.ask(
    body text, title text DEFAULT NULL, collection text DEFAULT NULL, profile text DEFAULT NULL,
    min_similarity double precision DEFAULT NULL, deadline interval DEFAULT '5 seconds'
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids integer[];
    names text;
    asked bigint;
    waits numeric := extract(epoch FROM coalesce(ask.deadline, '5 seconds'));
    until timestamptz;
BEGIN
    IF NOT waits BETWEEN 0 AND 24 * 60 * 60 THEN
        RAISE EXCEPTION 'a deadline of % is impossible; choose one from 0 to 24 hours', ask.deadline
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT ask.min_similarity BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a similarity of % is outside 0..1', ask.min_similarity
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT array_agg(known.collection_id), string_agg(quote_literal(known.name), ', ' ORDER BY known.name)
    INTO ids, names
    FROM nearsim.collection AS known
    WHERE known.name = ask.collection OR ask.collection IS NULL AND NOT known.temporary;
    IF ids IS NULL AND ask.collection IS NOT NULL THEN
        SELECT string_agg(quote_literal(known.name), ', ' ORDER BY known.name) INTO names
        FROM nearsim.collection AS known WHERE NOT known.temporary;
        RAISE EXCEPTION 'there is no collection %; there are: %',
            quote_literal(ask.collection), coalesce(names, 'none yet') USING ERRCODE = 'no_data_found';
    ELSIF ids IS NULL THEN
        RAISE EXCEPTION 'there is no collection yet' USING ERRCODE = 'no_data_found';
    ELSIF cardinality(ids) > 1 THEN
        RAISE EXCEPTION 'there are several collections; name one of: %', names
            USING ERRCODE = 'ambiguous_parameter';
    END IF;
    -- Taken before asked_at, which is the moment of the row, so that 24 hours are not exceeded.
    until := clock_timestamp() + make_interval(secs => waits);
    INSERT INTO nearsim.probe (collection_id, profile, title, body, min_similarity, deadline)
    VALUES (ids[1], ask.profile, ask.title, ask.body, coalesce(ask.min_similarity, 0), until)
    RETURNING probe.probe_id INTO asked;
    RETURN asked;
END
$$;
COMMENT ON FUNCTION nearsim.ask(text, text, text, text, double precision, interval) IS
    'Ask which documents a text would be paired with; commit, then give the number it returns to similar_to_text()';

CREATE FUNCTION nearsim.await_answer(probe_id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked record;
BEGIN
    LOOP
        SELECT probe.answered_at, probe.error, probe.asked_at, probe.deadline, probe.xmin INTO asked
        FROM nearsim.probe WHERE probe.probe_id = await_answer.probe_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no probe %', await_answer.probe_id USING ERRCODE = 'no_data_found';
        ELSIF asked.error IS NOT NULL THEN
            RAISE EXCEPTION '%', asked.error;
        ELSIF asked.answered_at IS NOT NULL THEN
            RETURN;
        ELSIF asked.xmin = CAST(pg_current_xact_id_if_assigned() AS xid) THEN
            RAISE EXCEPTION 'probe % was asked in this transaction; workers see it once that is committed',
                await_answer.probe_id
                USING ERRCODE = 'object_not_in_prerequisite_state',
                    HINT = 'Commit between nearsim.ask() and nearsim.similar_to_text().';
        ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE EXCEPTION 'this transaction cannot see the answer to probe %, as it sees nothing newer than itself',
                await_answer.probe_id
                USING ERRCODE = 'object_not_in_prerequisite_state',
                    HINT = 'Ask for it under READ COMMITTED.';
        ELSIF clock_timestamp() >= asked.deadline THEN
            RAISE EXCEPTION 'no worker answered probe % within % seconds', await_answer.probe_id,
                round(extract(epoch FROM asked.deadline - asked.asked_at), 1)
                USING ERRCODE = 'object_not_in_prerequisite_state',
                    HINT = 'A worker has to be running: nearsim worker. '
                        'It sees a probe once the transaction that asked is committed.';
        END IF;
        -- Short at first, then a tenth of what was waited for already.
        PERFORM pg_sleep(least(0.02, greatest(0.001,
            extract(epoch FROM clock_timestamp() - asked.asked_at) / 10)));
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.await_answer(bigint) IS
    'Part of similar_to_text: waits until a worker has answered a probe; raises its error, or one that no worker answered by the deadline';

CREATE FUNCTION nearsim.similar_to_text(probe_id bigint)
RETURNS TABLE (
    doc_id bigint, external_id text, title text, similarity double precision, estimate real,
    shared_bands smallint, intersection_size integer, union_size integer
)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nearsim.await_answer(similar_to_text.probe_id);
    RETURN QUERY
        SELECT found.doc_id, document.external_id, document.title, found.similarity, found.estimate,
            found.shared_bands, found.intersection_size, found.union_size
        FROM nearsim.probe_match AS found JOIN nearsim.document ON document.doc_id = found.doc_id
        WHERE found.probe_id = similar_to_text.probe_id
        ORDER BY found.similarity DESC, found.doc_id;
END
$$;
COMMENT ON FUNCTION nearsim.similar_to_text(bigint) IS
    'The documents that the text of a probe would be paired with, the most similar first; waits for a worker';
