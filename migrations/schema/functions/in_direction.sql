-- Relies on the same indexes as similar_to.
CREATE FUNCTION nearsim.in_direction(
    document bigint, min_share double precision, profile text, max_matches integer, held boolean)
RETURNS SETOF nearsim.similar_document LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    live record;
    own_features integer;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(nearsim.collection_of(document), profile, document);
    IF NOT FOUND THEN
        RETURN;
    ELSIF nearsim.metric_of(live.recipe) <> 'containment'
        AND (nearsim.metric_of(live.recipe) <> 'jaccard' OR NOT nearsim.is_exact(live.recipe))
    THEN
        RAISE EXCEPTION 'the metric of the profile is % and match.verify is %, which count no features in common',
            nearsim.metric_of(live.recipe), live.recipe #>> '{match,verify}' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Name a profile of the family winnow, or one with the metric jaccard and match.verify = "exact".';
    ELSIF NOT min_share BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a share of % is outside 0..1', min_share USING ERRCODE = 'invalid_parameter_value';
    ELSIF max_matches < 1 THEN
        RAISE EXCEPTION 'a maximum of % matches is out of range; choose 1 or more', max_matches
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The lookup has the fractions under containment only; for Jaccard they follow from the counts.
    IF nearsim.metric_of(live.recipe) = 'jaccard' THEN
        EXECUTE format('SELECT feature_count FROM %s AS own WHERE doc_id = $1', nearsim.rows_of('signed', live.generation_id))
            INTO own_features USING document;
    END IF;
    RETURN QUERY
        SELECT found.doc_id, found.external_id, found.title, found.similarity, found.estimate, found.shared_bands,
            found.intersection_size, found.union_size, found.numbers_differ, found.verdict, found.verified, found.distance,
            counted.left_in_right, counted.right_in_left
        FROM nearsim.similar_to_by_doc_id(document, profile => in_direction.profile) AS found
        CROSS JOIN LATERAL (
            SELECT coalesce(found.left_in_right, CAST(found.intersection_size AS double precision) / own_features),
                coalesce(found.right_in_left, CAST(found.intersection_size AS double precision)
                    / (found.intersection_size + found.union_size - own_features))
        ) AS counted (left_in_right, right_in_left)
        CROSS JOIN LATERAL (SELECT CASE WHEN held THEN counted.right_in_left ELSE counted.left_in_right END) AS decisive (share)
        WHERE decisive.share >= coalesce(min_share, CAST(live.recipe #>> '{match,threshold}' AS double precision))
        ORDER BY decisive.share DESC, found.doc_id LIMIT in_direction.max_matches;
END
$$;
COMMENT ON FUNCTION nearsim.in_direction(bigint, double precision, text, integer, boolean) IS
    'Internal (used by contains and contained_in): the documents that a document contains, or that contain it; raises an error unless the profile counts the features that two documents have in common';
