-- Request a lookup, which a worker answers.
CREATE FUNCTION nearsim.ask(
    body text, title text DEFAULT NULL, collection text DEFAULT NULL, profile text DEFAULT NULL,
    min_similarity double precision DEFAULT NULL, deadline interval DEFAULT '5 seconds',
    max_matches integer DEFAULT NULL, external_id text DEFAULT NULL, purpose text DEFAULT NULL
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home integer;
    new_probe_id bigint;
    seconds numeric := extract(epoch FROM coalesce(ask.deadline, '5 seconds'));
    deadline_at timestamptz;
BEGIN
    IF NOT seconds BETWEEN 0 AND 24 * 60 * 60 THEN
        RAISE EXCEPTION 'a deadline of % is out of range; choose one from 0 to 24 hours', ask.deadline
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT ask.min_similarity BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a similarity of % is outside 0..1', ask.min_similarity
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF ask.max_matches < 1 THEN
        RAISE EXCEPTION 'a maximum of % matches is out of range; choose 1 or more', ask.max_matches
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    home := nearsim.collection_named(ask.collection);
    -- Computed before asked_at, which is a default of the row, so that the deadline is at most 24 hours after it.
    deadline_at := clock_timestamp() + make_interval(secs => seconds);
    INSERT INTO nearsim.probe (collection_id, profile, title, body, min_similarity, deadline, max_matches, external_id, purpose)
    VALUES (home, ask.profile, ask.title, ask.body, coalesce(ask.min_similarity, 0), deadline_at, ask.max_matches,
        ask.external_id, ask.purpose)
    RETURNING probe.probe_id INTO new_probe_id;
    RETURN new_probe_id;
END
$$;
COMMENT ON FUNCTION nearsim.ask(text, text, text, text, double precision, interval, integer, text, text) IS
    'Request the documents that a text would be paired with. Commit, then pass the returned number to similar_to_text(). max_matches limits the answer to the documents with the best estimates, which need not be the most similar ones. The answer leaves out the stored document that has this external_id. The purpose is set for check_insert()';
