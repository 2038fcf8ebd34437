CREATE FUNCTION nearsim.answer_to(probe_id bigint) RETURNS jsonb
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1
BEGIN ATOMIC
    SELECT coalesce(jsonb_agg(to_jsonb(found) - 'ordinality' ORDER BY found.ordinality), '[]')
    FROM nearsim.similar_to_text(answer_to.probe_id) WITH ORDINALITY AS found;
END;
COMMENT ON FUNCTION nearsim.answer_to(bigint) IS 'The answer to a request as one JSON array, with an object for each row of similar_to_text(probe_id)';
