-- A procedure that commits cannot set its search_path, so it only calls functions that do, by qualified names.
CREATE PROCEDURE nearsim.similar_to_text(
    body text, INOUT answer jsonb DEFAULT NULL, title text DEFAULT NULL, collection text DEFAULT NULL,
    profile text DEFAULT NULL, min_similarity double precision DEFAULT NULL, deadline interval DEFAULT '5 seconds',
    max_matches integer DEFAULT NULL
)
LANGUAGE plpgsql AS $$
DECLARE
    asked bigint;
BEGIN
    asked := nearsim.ask(body, title, collection, profile, min_similarity, deadline, max_matches);
    -- The request need not survive a crash, as the caller's session does not either.
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true);
    CALL nearsim.commit_request(/* requires autocommit: cannot commit inside an open transaction */);
    answer := nearsim.answer_to(asked);
END
$$;
COMMENT ON PROCEDURE nearsim.similar_to_text(text, jsonb, text, text, text, double precision, interval, integer) IS
    'Request and wait in one statement, in autocommit only; the answer is an array of the rows of similar_to_text(probe_id). With max_matches candidates are compared in the order of their estimates until so many match: those with the best estimates, which need not be the most similar; ask for one more to see whether there are others';

CREATE FUNCTION nearsim.similar_to_text(probe_id bigint, max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.text_match
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF max_matches < 1 THEN
        RAISE EXCEPTION 'a maximum of % matches is out of range; choose 1 or more', max_matches
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM nearsim.await_answer(similar_to_text.probe_id);
    RETURN QUERY
        SELECT found.doc_id, document.external_id, document.title, found.similarity, found.estimate,
            found.shared_bands, found.intersection_size, found.union_size, found.distance, found.verified
        FROM nearsim.probe_match AS found JOIN nearsim.document ON document.doc_id = found.doc_id
        WHERE found.probe_id = similar_to_text.probe_id
        ORDER BY found.similarity DESC, found.doc_id LIMIT similar_to_text.max_matches;
END
$$;
COMMENT ON FUNCTION nearsim.similar_to_text(bigint, integer) IS
    'The documents that the text of a request would be paired with, the most similar first, then by doc_id; with max_matches only the first so many of the answer, which itself is limited by the max_matches of ask(). The similarity is an estimate where verified is false. Waits for a worker';
