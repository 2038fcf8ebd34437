CREATE FUNCTION nearsim.await_answer(probe_id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    request record;
BEGIN
    LOOP
        SELECT probe.answered_at, probe.error, probe.asked_at, probe.deadline, probe.purpose, probe.xmin INTO request
        FROM nearsim.probe WHERE probe.probe_id = await_answer.probe_id;
        IF NOT FOUND AND current_setting('transaction_isolation') = 'read committed' THEN
            RAISE EXCEPTION 'there is no probe %', await_answer.probe_id USING ERRCODE = 'no_data_found';
        ELSIF request.error IS NOT NULL THEN
            RAISE EXCEPTION '%', request.error;
        ELSIF request.answered_at IS NOT NULL THEN
            RETURN;
        ELSIF request.xmin = CAST(pg_current_xact_id_if_assigned() AS xid) THEN
            RAISE EXCEPTION 'probe % was requested in this transaction; workers see it after the commit',
                await_answer.probe_id
                USING ERRCODE = 'object_not_in_prerequisite_state',
                    HINT = 'Commit between nearsim.ask() and nearsim.similar_to_text().';
        ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE EXCEPTION 'the snapshot of this transaction is too old to see the answer to probe %',
                await_answer.probe_id
                USING ERRCODE = 'object_not_in_prerequisite_state',
                    HINT = 'Use isolation level READ COMMITTED.';
        ELSIF clock_timestamp() >= request.deadline THEN
            RAISE EXCEPTION 'no worker answered probe % within % seconds', await_answer.probe_id,
                round(extract(epoch FROM request.deadline - request.asked_at), 1)
                USING ERRCODE = 'object_not_in_prerequisite_state',
                    HINT = concat('A worker has to be running: nearsim worker. ', CASE WHEN request.purpose IS NULL
                        THEN 'It sees a probe once the requesting transaction is committed.'
                        ELSE 'It answers once it has indexed what was committed before; raise the deadline if that is much.'
                        END);
        END IF;
        -- A tenth of the time waited so far, from 1 to 20 ms.
        PERFORM pg_sleep(least(0.02, greatest(0.001,
            extract(epoch FROM clock_timestamp() - request.asked_at) / 10)));
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.await_answer(bigint) IS
    'Internal (used by similar_to_text): waits until a worker has answered a request; raises the request''s error, or an error at the deadline';
