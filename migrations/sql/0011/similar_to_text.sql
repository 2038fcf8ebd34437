-- The functions of 0008 with distances.
DROP FUNCTION nearsim.answer_to(bigint);
DROP FUNCTION nearsim.similar_to_text(bigint);
CREATE FUNCTION nearsim.similar_to_text(probe_id bigint)
RETURNS TABLE (
    doc_id bigint, external_id text, title text, similarity double precision, estimate real,
    shared_bands smallint, intersection_size integer, union_size integer, distance double precision
)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nearsim.await_answer(similar_to_text.probe_id);
    RETURN QUERY
        SELECT found.doc_id, document.external_id, document.title, found.similarity, found.estimate,
            found.shared_bands, found.intersection_size, found.union_size, found.distance
        FROM nearsim.probe_match AS found JOIN nearsim.document ON document.doc_id = found.doc_id
        WHERE found.probe_id = similar_to_text.probe_id
        ORDER BY found.similarity DESC, found.doc_id;
END
$$;
COMMENT ON FUNCTION nearsim.similar_to_text(bigint) IS
    'The documents that the text of a probe would be paired with, the most similar first; waits for a worker';

CREATE FUNCTION nearsim.answer_to(probe_id bigint) RETURNS jsonb
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce(jsonb_agg(to_jsonb(found) - 'ordinality' ORDER BY found.ordinality), '[]')
    FROM nearsim.similar_to_text(answer_to.probe_id) WITH ORDINALITY AS found;
END;
COMMENT ON FUNCTION nearsim.answer_to(bigint) IS 'The rows of similar_to_text(probe_id) as one array';
