-- Relies on what similar_to relies on.
CREATE FUNCTION nearsim.contains(
    document bigint, min_share double precision DEFAULT NULL, profile text DEFAULT NULL, max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    least_share constant double precision := nearsim.refuse_other_metric(document, profile, min_share, max_matches);
BEGIN
    RETURN QUERY
        SELECT found.* FROM nearsim.similar_to(document, profile => contains.profile) AS found
        WHERE found.right_in_left >= least_share
        ORDER BY found.right_in_left DESC, found.doc_id LIMIT contains.max_matches;
END
$$;
COMMENT ON FUNCTION nearsim.contains(bigint, double precision, text, integer) IS
    'The documents that one holds: those of which it has at least the share min_share, by default the threshold of the recipe. Rows are those of similar_to, by right_in_left, the share of each that is in it; with max_matches only the first so many. For profiles of the family winnow';

CREATE FUNCTION nearsim.contains(
    document text, min_share double precision DEFAULT NULL, profile text DEFAULT NULL, collection text DEFAULT NULL,
    max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.contains(
        nearsim.document_named(document, collection), min_share, profile, max_matches);
END
$$;
COMMENT ON FUNCTION nearsim.contains(text, double precision, text, text, integer) IS
    'contains by external_id; name the collection if several have such a document';
