-- A procedure that commits cannot set its search_path. So it only calls, by qualified names, functions that set theirs.
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
    -- The request need not survive a crash, because the caller's session does not survive it either.
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true);
    CALL nearsim.commit_request(/* requires autocommit: cannot commit inside an open transaction */);
    answer := nearsim.answer_to(asked);
END
$$;
COMMENT ON PROCEDURE nearsim.similar_to_text(text, jsonb, text, text, text, double precision, interval, integer) IS
    'Request the documents that a text would be paired with and wait for the answer, in one statement. This works only in autocommit mode. The answer is a JSON array of the rows of similar_to_text(probe_id). With max_matches, candidates are compared in the order of their estimates until that many match; so the answer has the documents with the best estimates, which need not be the most similar ones. Request one more than you need to see whether there are more';

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
    'The documents that the text of a request would be paired with. Waits until a worker has answered the request. The most similar come first, then the smaller doc_id; max_matches limits the rows to the first ones of the answer, which max_matches of ask() may have limited before. The similarity is an estimate where verified is false';
