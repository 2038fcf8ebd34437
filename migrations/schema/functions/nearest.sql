CREATE FUNCTION nearsim.nearest(
    doc_id bigint, k integer DEFAULT 5, min_similarity double precision DEFAULT 0.2, profile text DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.similar_to(doc_id, coalesce(min_similarity, 0), 1, profile, coalesce(k, 5));
END
$$;
COMMENT ON FUNCTION nearsim.nearest(bigint, integer, double precision, text) IS
    'The k most similar documents of one, whatever the threshold of the profile, among those that share a bucket with it: pairs and pairs to be reviewed, and others with verified = false, whose similarity is the sketches'' estimate. match_probability is the share of documents of a similarity that do share one; nearsim nearest compares more. A notice says if the present text of the document is not indexed yet';

CREATE FUNCTION nearsim.nearest(
    external_id text, k integer DEFAULT 5, min_similarity double precision DEFAULT 0.2, profile text DEFAULT NULL,
    collection text DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.similar_to(
        external_id, coalesce(min_similarity, 0), 1, profile, collection, coalesce(k, 5));
END
$$;
COMMENT ON FUNCTION nearsim.nearest(text, integer, double precision, text, text) IS
    'nearest by external_id; name the collection if several have such a document';
