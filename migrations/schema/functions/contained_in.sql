-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
-- The bodies are strings: Citus sees a circular dependency between bodies in BEGIN ATOMIC and in_direction.
CREATE FUNCTION nearsim.contained_in_by_doc_id(
    document bigint, min_share double precision DEFAULT NULL, profile text DEFAULT NULL, max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.similar_document LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT * FROM nearsim.in_direction(document, min_share, profile, max_matches, false);
$$;
COMMENT ON FUNCTION nearsim.contained_in_by_doc_id(bigint, double precision, text, integer) IS
    'The same as contained_in, for a document named by its doc_id';

CREATE FUNCTION nearsim.contained_in(
    document text, min_share double precision DEFAULT NULL, profile text DEFAULT NULL, collection text DEFAULT NULL,
    max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.similar_document LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT * FROM nearsim.in_direction(
        nearsim.document_named(document, collection), min_share, profile, max_matches, false);
$$;
COMMENT ON FUNCTION nearsim.contained_in(text, double precision, text, text, integer) IS
    'The documents that contain a document: each has at least the fraction min_share of its features, by default the threshold of the recipe. The columns are those of similar_to; rows are ordered by left_in_right, the fraction of the document that the row''s document contains, and max_matches limits them to the first ones. Only for profiles of the family winnow, or with the metric jaccard and match.verify = exact; with jaccard, it finds only documents that are similar as a whole. Name the collection if several have such a document';
