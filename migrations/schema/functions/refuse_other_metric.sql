-- Relies on the keys of generation and profile.
CREATE FUNCTION nearsim.refuse_other_metric(
    doc_id bigint, profile text, min_share double precision, max_matches integer)
RETURNS double precision LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    live record;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(nearsim.collection_of(doc_id), profile, doc_id);
    IF NOT FOUND THEN
        RETURN 1;
    ELSIF nearsim.metric_of(live.recipe) <> 'containment' THEN
        RAISE EXCEPTION 'the metric of the profile is %, which has no directions', nearsim.metric_of(live.recipe)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Name a profile of the family winnow.';
    ELSIF NOT min_share BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a share of % is outside 0..1', min_share USING ERRCODE = 'invalid_parameter_value';
    ELSIF max_matches < 1 THEN
        RAISE EXCEPTION 'a maximum of % matches is out of range; choose 1 or more', max_matches
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN coalesce(min_share, CAST(live.recipe #>> '{match,threshold}' AS double precision));
END
$$;
COMMENT ON FUNCTION nearsim.refuse_other_metric(bigint, text, double precision, integer) IS
    'Internal (used by contains and contained_in): the least share, by default the threshold of the recipe; an error for a profile whose metric is not containment';
