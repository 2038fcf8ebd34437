-- Runs as the caller: a document that row-level security hides does not exist. Relies on document_external_id_key.
CREATE FUNCTION nearsim.document_named(external_id text, collection text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    doc_ids bigint[];
    names text;
BEGIN
    IF external_id IS NULL THEN
        RAISE EXCEPTION 'external_id must not be NULL' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    SELECT array_agg(found.doc_id), string_agg(place.name, ', ' ORDER BY place.name) INTO doc_ids, names
    FROM nearsim.collection AS place
    CROSS JOIN LATERAL (
        SELECT document.doc_id FROM nearsim.document
        WHERE document.collection_id = place.collection_id
            AND document.external_id = document_named.external_id COLLATE "C"
        LIMIT 1) AS found
    WHERE document_named.collection IS NULL OR place.name = document_named.collection;
    IF cardinality(doc_ids) = 1 THEN
        RETURN doc_ids[1];
    ELSIF doc_ids IS NULL THEN
        PERFORM nearsim.collection_named(collection) WHERE collection IS NOT NULL;
        RAISE EXCEPTION 'there is no document %', concat_ws(' in collection ', quote_literal(external_id),
            quote_literal(collection)) USING ERRCODE = 'no_data_found';
    END IF;
    RAISE EXCEPTION 'there is a document % in several collections; name one of: %', quote_literal(external_id), names
        USING ERRCODE = 'ambiguous_parameter';
END
$$;
COMMENT ON FUNCTION nearsim.document_named(text, text) IS
    'The doc_id of the document with an external_id. Name the collection if several have such a document';
