CREATE FUNCTION nearsim.pairs_of(
    generation_id integer, doc_id bigint, min_similarity double precision, min_shared_bands integer)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    generation_row record;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN;
    END IF;
    SELECT profile.collection_id, generation.bands, generation.recipe INTO generation_row
    FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
    WHERE generation.generation_id = pairs_of.generation_id;
    RETURN QUERY EXECUTE format('SELECT * FROM nearsim_index.%I($1, $2, $3, $4, $5, $6, $7, NULL)',
        nearsim.leaf_of('pairs_of', generation_id))
        USING generation_id, doc_id, generation_row.collection_id, min_similarity, min_shared_bands, generation_row.bands,
            generation_row.recipe;
END
$$;
COMMENT ON FUNCTION nearsim.pairs_of(integer, bigint, double precision, integer) IS
    'Internal (used by similar_by_profiles): the documents, twins included, that are paired with a document in a generation; pairs to be reviewed only if min_similarity is passed; no rows if the caller may not read the generation';
