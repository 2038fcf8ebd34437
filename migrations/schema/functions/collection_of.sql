-- Runs as the caller: a document that row-level security hides does not exist.
CREATE FUNCTION nearsim.collection_of(doc_id bigint) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home integer;
BEGIN
    IF doc_id IS NULL THEN
        RAISE EXCEPTION 'doc_id must not be NULL' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    SELECT document.collection_id INTO home FROM nearsim.document WHERE document.doc_id = collection_of.doc_id;
    IF home IS NULL THEN
        RAISE EXCEPTION 'there is no document %', doc_id USING ERRCODE = 'no_data_found';
    END IF;
    RETURN home;
END
$$;
COMMENT ON FUNCTION nearsim.collection_of(bigint) IS
    'Internal (used by similar_to and other functions): the collection_id of a document; raises an error if the document does not exist';
