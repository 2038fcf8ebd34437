-- Asking and waiting in one statement.
CREATE FUNCTION nearsim.answer_to(probe_id bigint) RETURNS jsonb
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce(jsonb_agg(to_jsonb(found) - 'ordinality' ORDER BY found.ordinality), '[]')
    FROM nearsim.similar_to_text(answer_to.probe_id) WITH ORDINALITY AS found;
END;
COMMENT ON FUNCTION nearsim.answer_to(bigint) IS 'The rows of similar_to_text(probe_id) as one array';

CREATE PROCEDURE nearsim.commit_question()
LANGUAGE plpgsql AS $$
BEGIN
    COMMIT;
END
$$;
COMMENT ON PROCEDURE nearsim.commit_question() IS
    'Part of similar_to_text: a step that stands in the context of the error where that is called in an open transaction';

-- A procedure that commits cannot pin its search_path: what it does is in functions that do, by qualified names.
CREATE PROCEDURE nearsim.similar_to_text(
    body text, INOUT answer jsonb DEFAULT NULL, title text DEFAULT NULL, collection text DEFAULT NULL,
    profile text DEFAULT NULL, min_similarity double precision DEFAULT NULL, deadline interval DEFAULT '5 seconds'
)
LANGUAGE plpgsql AS $$
DECLARE
    asked bigint;
BEGIN
    asked := nearsim.ask(body, title, collection, profile, min_similarity, deadline);
    -- The question need not outlive a crash, as he who asks would not either.
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true);
    CALL nearsim.commit_question(/* which cannot be done in an open transaction: turn autocommit on */);
    answer := nearsim.answer_to(asked);
END
$$;
COMMENT ON PROCEDURE nearsim.similar_to_text(text, jsonb, text, text, text, double precision, interval) IS
    'Ask and wait in one statement, in autocommit only; the answer is an array of the rows of similar_to_text(probe_id)';
