-- By doc_id and by external_id, under two names: an integer id must not be taken for a doc_id.
-- The bodies are strings: Citus sees a circular dependency between bodies in BEGIN ATOMIC and in_direction.
CREATE FUNCTION nearsim.contains_by_doc_id(
    document bigint, min_share double precision DEFAULT NULL, profile text DEFAULT NULL, max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.similar_document LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT * FROM nearsim.in_direction(document, min_share, profile, max_matches, true);
$$;
COMMENT ON FUNCTION nearsim.contains_by_doc_id(bigint, double precision, text, integer) IS
    'The same as contains, for a document named by its doc_id';

CREATE FUNCTION nearsim.contains(
    document text, min_share double precision DEFAULT NULL, profile text DEFAULT NULL, collection text DEFAULT NULL,
    max_matches integer DEFAULT NULL)
RETURNS SETOF nearsim.similar_document LANGUAGE sql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
    SELECT * FROM nearsim.in_direction(
        nearsim.document_named(document, collection), min_share, profile, max_matches, true);
$$;
COMMENT ON FUNCTION nearsim.contains(text, double precision, text, text, integer) IS
    'The documents that a document contains: it has at least the fraction min_share of the features of each, by default the threshold of the recipe. The columns are those of similar_to; rows are ordered by right_in_left, the fraction of the row''s document that the document contains, and max_matches limits them to the first ones. Only for profiles of the family winnow, or with the metric jaccard and match.verify = exact; with jaccard, it finds only documents that are similar as a whole. Name the collection if several have such a document';
