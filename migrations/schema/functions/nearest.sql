-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
CREATE FUNCTION nearsim.nearest_by_doc_id(
    doc_id bigint, k integer DEFAULT 5, min_similarity double precision DEFAULT 0.2, profile text DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.similar_to_by_doc_id(
        doc_id, coalesce(min_similarity, 0), 1, profile, coalesce(k, 5));
END
$$;
COMMENT ON FUNCTION nearsim.nearest_by_doc_id(bigint, integer, double precision, text) IS
    'nearest by doc_id';

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
    'The k documents most similar to a document, whatever the threshold of the profile, among the documents that share a bucket with it: pairs and pairs to be reviewed, and others with verified = false, whose similarity is the sketches'' estimate. match_probability is the share of documents of a similarity that share a bucket; nearsim nearest compares more. A notice says if the present text of the document is not indexed yet. Name the collection if several have such a document';
