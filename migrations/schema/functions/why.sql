-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
-- Relies on document_pkey and on the function that create_evidence creates for the generation.
CREATE FUNCTION nearsim.why_by_doc_id(a bigint, b bigint, profile text DEFAULT NULL)
RETURNS SETOF nearsim.pair_evidence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    live record;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(nearsim.common_collection(a, b), profile, a);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format('SELECT * FROM nearsim_index.%I($1, $2, $3, $4, $5, $6, $7, $8, $9)',
        nearsim.leaf_of('evidence_of', live.generation_id))
        USING live.generation_id, least(a, b), greatest(a, b), live.profile_name, live.recipe, live.bands, live.rows, live.threshold,
            nearsim.metric_of(live.recipe);
END
$$;
COMMENT ON FUNCTION nearsim.why_by_doc_id(bigint, bigint, text) IS
    'The same as why, for two documents named by their doc_ids';

CREATE FUNCTION nearsim.why(a text, b text, profile text DEFAULT NULL, collection text DEFAULT NULL)
RETURNS SETOF nearsim.pair_evidence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.why_by_doc_id(
        nearsim.document_named(a, collection), nearsim.document_named(b, collection), profile);
END
$$;
COMMENT ON FUNCTION nearsim.why(text, text, text, text) IS
    'The evidence that two documents are a pair, or not: scores, shared bands, differing numbers, verdict and recipe. The document with the smaller doc_id is on the left. is_pair is true if they are a pair; if they are not, why_not() gives the reason. Documents that are not a pair have only an estimate; their similarity is NULL, and the command nearsim why computes it from the texts. numbers_only_left and numbers_only_right are NULL while a text is newer than the index, and if normalise.html is main: the command nearsim why shows them. Name the collection if several have both documents';
