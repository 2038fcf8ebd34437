-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
CREATE FUNCTION nearsim.why_not_by_doc_id(a bigint, b bigint, profile text DEFAULT NULL)
RETURNS SETOF nearsim.pair_absence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first_id constant bigint := least(a, b);
    second_id constant bigint := greatest(a, b);
BEGIN
    IF nearsim.collection_of(a) <> nearsim.collection_of(b) THEN
        RETURN QUERY
            SELECT l.doc_id, r.doc_id, l.external_id, r.external_id, CAST(NULL AS text), CAST(NULL AS integer), false,
                CAST(NULL AS smallint), CAST(NULL AS real), CAST(NULL AS double precision),
                CAST(NULL AS double precision), CAST(NULL AS integer), CAST(NULL AS text),
                format('they are in different collections, %L and %L, and only documents of the same collection are compared',
                    left_place.name, right_place.name),
                CAST(NULL AS text), l.title, r.title
            FROM nearsim.document AS l JOIN nearsim.collection AS left_place USING (collection_id)
            CROSS JOIN nearsim.document AS r JOIN nearsim.collection AS right_place
                ON right_place.collection_id = r.collection_id
            WHERE l.doc_id = first_id AND r.doc_id = second_id;
        RETURN;
    END IF;
    RETURN QUERY
        SELECT pair.left_id, pair.right_id, pair.left_external_id, pair.right_external_id, pair.profile,
            pair.generation_id, pair.is_pair, pair.shared_bands, pair.estimate,
            nearsim.match_probability(nearsim.collision_probability(live.recipe, compared.estimate),
                nearsim.amplification_of(live.recipe, live.bands, live.rows)),
            pair.threshold, live.min_shared_bands, pair.verdict,
            nearsim.reason_of(pair, compared.estimate, compared.are_linked),
            pair.collection, pair.left_title, pair.right_title
        FROM nearsim.why_by_doc_id(first_id, second_id, why_not_by_doc_id.profile) AS pair
        CROSS JOIN nearsim.live_generation(
            nearsim.collection_of(first_id), why_not_by_doc_id.profile, first_id) AS live
        LEFT JOIN nearsim.compare_sketches(live.generation_id, first_id, second_id) AS compared ON true;
END
$$;
COMMENT ON FUNCTION nearsim.why_not_by_doc_id(bigint, bigint, text) IS
    'The same as why_not, for two documents named by their doc_ids';

CREATE FUNCTION nearsim.why_not(a text, b text, profile text DEFAULT NULL, collection text DEFAULT NULL)
RETURNS SETOF nearsim.pair_absence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.why_not_by_doc_id(
        nearsim.document_named(a, collection), nearsim.document_named(b, collection), profile);
END
$$;
COMMENT ON FUNCTION nearsim.why_not(text, text, text, text) IS
    'The reason why two documents are not a pair, as a sentence, with their shared bands, their estimated similarity, and the probability that this recipe finds a pair of that similarity. Name the collection if several have both documents';
