-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
-- Relies on document_pkey and on the function that every generation has (create_evidence).
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
    'why by doc_id';

CREATE FUNCTION nearsim.why(a text, b text, profile text DEFAULT NULL, collection text DEFAULT NULL)
RETURNS SETOF nearsim.pair_evidence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.why_by_doc_id(
        nearsim.document_named(a, collection), nearsim.document_named(b, collection), profile);
END
$$;
COMMENT ON FUNCTION nearsim.why(text, text, text, text) IS
    'The evidence for two documents as a pair, the smaller doc_id on the left: scores, shared bands (from 0), differing numbers (numbers_only_left and numbers_only_right are NULL while a text is newer than the index), verdict and recipe. For documents that are not a pair, similarity is NULL, and estimate the only score: the command nearsim why computes the similarity from the texts. is_pair says whether they are a pair; if not, why_not() explains it. Name the collection if several have both documents';
