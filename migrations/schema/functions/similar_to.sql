-- Relies on document_pkey and verdict_one_current.
CREATE FUNCTION nearsim.similar_to(
    doc_id bigint, min_similarity double precision DEFAULT NULL, min_shared_bands integer DEFAULT NULL,
    profile text DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    home constant integer := nearsim.collection_of(doc_id);
    live record;
    least_alike double precision;
    alike double precision;
BEGIN
    SELECT * INTO STRICT live FROM nearsim.live_generation(home, profile);
    least_alike := nearsim.least_similarity(live.recipe);
    alike := coalesce(min_similarity, least_alike);
    IF NOT alike BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a similarity of % is outside 0..1', alike USING ERRCODE = 'invalid_parameter_value';
    ELSIF min_shared_bands < 1 THEN
        RAISE EXCEPTION 'a minimum of % shared bands is out of range; choose 1 or more', min_shared_bands
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
        SELECT named.doc_id, named.external_id, named.title, found.similarity, found.estimate, found.shared_bands,
            found.intersection_size, found.union_size, found.numbers_differ, said.verdict, found.verified, found.distance
        FROM (
            SELECT kept.*, true AS verified
            FROM nearsim.pairs_of(live.generation_id, similar_to.doc_id, coalesce(min_similarity, 0),
                coalesce(min_shared_bands, 1)) AS kept
            UNION ALL
            SELECT met.other_id, met.estimate, CAST(met.estimate AS real), met.shared_bands, NULL, NULL,
                met.numbers_differ, NULL, false
            FROM nearsim.bucket_neighbours(live.generation_id, similar_to.doc_id, alike, min_shared_bands) AS met
            WHERE alike < least_alike OR min_shared_bands < live.min_shared_bands
                OR min_shared_bands > 0 AND live.recipe #>> '{match,amplification}' IS NOT NULL
        ) AS found
        CROSS JOIN LATERAL (
            SELECT document.doc_id, document.external_id, document.title FROM nearsim.document
            WHERE document.doc_id = found.other_id AND document.collection_id = home LIMIT 1
        ) AS named
        LEFT JOIN LATERAL (
            SELECT verdict.verdict FROM nearsim.verdict
            WHERE verdict.left_id = least(similar_to.doc_id, found.other_id)
                AND verdict.right_id = greatest(similar_to.doc_id, found.other_id) AND verdict.undone_at IS NULL LIMIT 1
        ) AS said ON true
        ORDER BY found.similarity DESC, found.other_id;
END
$$;
COMMENT ON FUNCTION nearsim.similar_to(bigint, double precision, integer, text) IS
    'The documents that are similar to one, the most similar first. By default min_similarity and min_shared_bands are those of the recipe, and all rows are verified pairs. With lower values it adds other documents in the same buckets (the first bucket_limit of each): these have verified = false, and their similarity is the sketches'' estimate. Empty for a document that is not indexed yet; nearsim.documents shows its state';

CREATE FUNCTION nearsim.similar_to(
    external_id text, min_similarity double precision DEFAULT NULL, min_shared_bands integer DEFAULT NULL,
    profile text DEFAULT NULL, collection text DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.similar_to(
        nearsim.document_named(external_id, collection), min_similarity, min_shared_bands, profile);
END
$$;
COMMENT ON FUNCTION nearsim.similar_to(text, double precision, integer, text, text) IS
    'similar_to by external_id; name the collection if several have such a document';
