-- Who asks sees what row-level security lets through: what is hidden is not there.
CREATE FUNCTION nearsim.collection_of(doc_id bigint) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home integer;
BEGIN
    IF doc_id IS NULL THEN
        RAISE EXCEPTION 'a doc_id is needed, and NULL was given' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    SELECT document.collection_id INTO home FROM nearsim.document WHERE document.doc_id = collection_of.doc_id;
    IF home IS NULL THEN
        RAISE EXCEPTION 'there is no document %', doc_id USING ERRCODE = 'no_data_found';
    END IF;
    RETURN home;
END
$$;
COMMENT ON FUNCTION nearsim.collection_of(bigint) IS
    'Part of similar_to and others: the number of a document''s collection; an error where there is no such document';
