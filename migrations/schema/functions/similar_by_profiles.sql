-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
-- Relies on the partitions' keys, as pairs_of does.
CREATE FUNCTION nearsim.similar_by_profiles_by_doc_id(
    doc_id bigint, profiles text[] DEFAULT NULL, max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.combined_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 SET jit = off AS $$
DECLARE
    home constant integer := nearsim.collection_of(doc_id);
    generation_ids integer[];
    is_empty boolean;
BEGIN
    IF max_matches < 1 THEN
        RAISE EXCEPTION 'a maximum of % matches is out of range; choose 1 or more', max_matches
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT array_agg(live.generation_id) INTO generation_ids
    FROM nearsim.live_generations_of(
        home, similar_by_profiles_by_doc_id.profiles, similar_by_profiles_by_doc_id.doc_id) AS live;
    RETURN QUERY
        SELECT named.doc_id, named.external_id, named.title, found.names, found.similarities, found.highest, found.lowest,
            current.verdict, found.are_verified
        FROM (
            SELECT alike.doc_id AS other_id, array_agg(live.name ORDER BY live.name COLLATE "C") AS names,
                jsonb_object_agg(live.name, alike.similarity) AS similarities,
                max(alike.similarity) AS highest, min(alike.similarity) AS lowest,
                bool_and(alike.verified) AS are_verified
            FROM nearsim.generation JOIN nearsim.profile AS live USING (profile_id)
            CROSS JOIN LATERAL nearsim.pairs_of(
                generation.generation_id, similar_by_profiles_by_doc_id.doc_id, NULL, 1) AS alike
            WHERE generation.generation_id = ANY (generation_ids)
            GROUP BY alike.doc_id
        ) AS found
        CROSS JOIN LATERAL (
            SELECT document.doc_id, document.external_id, document.title FROM nearsim.document
            WHERE document.doc_id = found.other_id AND document.collection_id = home LIMIT 1
        ) AS named
        LEFT JOIN LATERAL (
            SELECT verdict.verdict FROM nearsim.verdict
            WHERE verdict.left_id = least(similar_by_profiles_by_doc_id.doc_id, found.other_id)
                AND verdict.right_id = greatest(similar_by_profiles_by_doc_id.doc_id, found.other_id)
                AND verdict.undone_at IS NULL LIMIT 1
        ) AS current ON true
        ORDER BY found.highest DESC, found.other_id LIMIT similar_by_profiles_by_doc_id.max_matches;
    is_empty := NOT FOUND;
    PERFORM nearsim.report_unindexed(generation_id, doc_id, is_empty) FROM unnest(generation_ids) AS generation_id;
END
$$;
COMMENT ON FUNCTION nearsim.similar_by_profiles_by_doc_id(bigint, text[], integer) IS
    'The same as similar_by_profiles, for a document named by its doc_id';

CREATE FUNCTION nearsim.similar_by_profiles(
    external_id text, profiles text[] DEFAULT NULL, collection text DEFAULT NULL, max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.combined_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.similar_by_profiles_by_doc_id(
        nearsim.document_named(external_id, collection), profiles, max_matches);
END
$$;
COMMENT ON FUNCTION nearsim.similar_by_profiles(text, text[], text, integer) IS
    'The documents that are a pair with a document under at least one of the profiles, by default of all live profiles. Each document is one row with the names of its profiles; the most similar come first, then the smaller doc_id. max_matches limits the rows to the first ones. Raises a notice if the present text of the document is not indexed yet. Name the collection if several have such a document';
