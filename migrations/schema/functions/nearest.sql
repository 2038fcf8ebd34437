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
    'The same as nearest, for a document named by its doc_id';

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
    'The k documents most similar to a document, whatever the threshold of the profile, among the documents that share a bucket with it. These are pairs, pairs to be reviewed, and other documents with verified = false, whose similarity is the sketches'' estimate. Documents of a similarity s share a bucket with the probability match_probability(s, bands, rows); the command nearsim nearest compares more documents. Raises a notice if the present text of the document is not indexed yet. Name the collection if several have such a document';
