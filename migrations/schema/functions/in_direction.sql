-- Relies on the same indexes as similar_to.
CREATE FUNCTION nearsim.in_direction(
    document bigint, min_share double precision, profile text, max_matches integer, held boolean)
RETURNS SETOF nearsim.similar_document LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    live record;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(nearsim.collection_of(document), profile, document);
    IF NOT FOUND THEN
        RETURN;
    ELSIF nearsim.metric_of(live.recipe) <> 'containment' THEN
        RAISE EXCEPTION 'the metric of the profile is %, which has no directions', nearsim.metric_of(live.recipe)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Name a profile of the family winnow.';
    ELSIF NOT min_share BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a share of % is outside 0..1', min_share USING ERRCODE = 'invalid_parameter_value';
    ELSIF max_matches < 1 THEN
        RAISE EXCEPTION 'a maximum of % matches is out of range; choose 1 or more', max_matches
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
        SELECT found.* FROM nearsim.similar_to_by_doc_id(document, profile => in_direction.profile) AS found
        CROSS JOIN LATERAL (SELECT CASE WHEN held THEN found.right_in_left ELSE found.left_in_right END) AS decisive (share)
        WHERE decisive.share >= coalesce(min_share, CAST(live.recipe #>> '{match,threshold}' AS double precision))
        ORDER BY decisive.share DESC, found.doc_id LIMIT in_direction.max_matches;
END
$$;
COMMENT ON FUNCTION nearsim.in_direction(bigint, double precision, text, integer, boolean) IS
    'Internal (used by contains and contained_in): the documents that a document contains, or that contain it; raises an error unless the metric of the profile is containment';
