-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
-- Relies on document_pkey and verdict_one_current, and on the function that create_lookup creates for the generation.
CREATE FUNCTION nearsim.similar_to_by_doc_id(
    doc_id bigint, min_similarity double precision DEFAULT NULL, min_shared_bands integer DEFAULT NULL,
    profile text DEFAULT NULL, max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home constant integer := nearsim.collection_of(doc_id);
    live record;
    recipe_minimum double precision;
    lowest_similarity double precision;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(home, profile, doc_id);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    recipe_minimum := nearsim.least_similarity(live.recipe);
    lowest_similarity := coalesce(min_similarity, recipe_minimum);
    IF NOT lowest_similarity BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a similarity of % is outside 0..1', lowest_similarity USING ERRCODE = 'invalid_parameter_value';
    ELSIF min_shared_bands < 1 THEN
        RAISE EXCEPTION 'a minimum of % shared bands is out of range; choose 1 or more', min_shared_bands
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF max_matches < 1 THEN
        RAISE EXCEPTION 'a maximum of % matches is out of range; choose 1 or more', max_matches
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF lowest_similarity < recipe_minimum OR min_shared_bands IS NOT NULL THEN
        RETURN QUERY SELECT * FROM nearsim.similar_in_buckets(
            live.generation_id, home, similar_to_by_doc_id.doc_id, lowest_similarity,
            min_similarity, min_shared_bands, similar_to_by_doc_id.max_matches);
    ELSE
        RETURN QUERY EXECUTE format('SELECT * FROM nearsim_index.%I($1, $2, $3, $4, 1, $5, $6, $7)',
            nearsim.leaf_of('pairs_of', live.generation_id))
            USING live.generation_id, doc_id, home, min_similarity, live.bands, live.recipe, max_matches;
    END IF;
    PERFORM nearsim.report_unindexed(live.generation_id, doc_id, NOT FOUND);
END
$$;
COMMENT ON FUNCTION nearsim.similar_to_by_doc_id(bigint, double precision, integer, text, integer) IS
    'The same as similar_to, for a document named by its doc_id';

CREATE FUNCTION nearsim.similar_to(
    external_id text, min_similarity double precision DEFAULT NULL, min_shared_bands integer DEFAULT NULL,
    profile text DEFAULT NULL, collection text DEFAULT NULL, max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    named_id bigint;
BEGIN
    named_id := nearsim.document_named(external_id, collection);
    RETURN QUERY SELECT * FROM nearsim.similar_to_by_doc_id(
        named_id, min_similarity, min_shared_bands, profile, max_matches);
EXCEPTION WHEN no_data_found THEN
    IF named_id IS NOT NULL OR NOT EXISTS (
        SELECT FROM nearsim_index.visible_changes AS change JOIN nearsim.collection AS place USING (collection_id)
        WHERE change.external_id = similar_to.external_id COLLATE "C"
            AND (similar_to.collection IS NULL OR place.name = similar_to.collection))
    THEN
        RAISE;
    END IF;
    RAISE NOTICE 'the row % was written to its attached table and is not indexed yet', quote_literal(external_id);
END
$$;
COMMENT ON FUNCTION nearsim.similar_to(text, double precision, integer, text, text, integer) IS
    'The documents that are similar to a document. The most similar come first, then the smaller doc_id; max_matches limits the rows to the first ones (request one more than you need to see whether there are more). By default min_similarity and min_shared_bands are those of the recipe, and all rows are pairs, verified unless the recipe accepts estimates (match.verify). With lower values there are also pairs to be reviewed (match.review) and other documents from the same buckets (the first bucket_limit documents of each bucket); the latter have verified = false, and their similarity is the sketches'' estimate. Raises a notice if the present text of the document is not indexed yet: the answer is then empty, or it is the answer for the former text. For a row of an attached table that is not indexed yet, such as one that this transaction wrote, there are no rows but a notice. Name the collection if several have such a document';
