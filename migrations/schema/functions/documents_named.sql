CREATE FUNCTION nearsim.documents_named(a text, b text, collection text, OUT a_id bigint, OUT b_id bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names text[];
    unknown text;
BEGIN
    IF a = b COLLATE "C" THEN
        RAISE EXCEPTION 'a verdict is about two documents, not about % and itself', quote_literal(a)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT min(a_document.doc_id), min(b_document.doc_id), array_agg(place.name ORDER BY place.name) INTO a_id, b_id, names
    FROM nearsim.collection AS place
    JOIN nearsim.document AS a_document
        ON a_document.collection_id = place.collection_id AND a_document.external_id = a COLLATE "C"
    JOIN nearsim.document AS b_document
        ON b_document.collection_id = place.collection_id AND b_document.external_id = b COLLATE "C"
    WHERE place.name = documents_named.collection OR documents_named.collection IS NULL;
    IF cardinality(names) > 1 THEN
        RAISE EXCEPTION 'documents % and % are in several collections; name one of: %',
            quote_literal(a), quote_literal(b), array_to_string(names, ', ') USING ERRCODE = 'invalid_parameter_value';
    ELSIF names IS NULL THEN
        PERFORM nearsim.collection_named(collection) WHERE documents_named.collection IS NOT NULL;
        SELECT given.external_id INTO unknown
        FROM unnest(ARRAY[a, b]) WITH ORDINALITY AS given (external_id, position)
        WHERE NOT EXISTS (
            SELECT FROM nearsim.document JOIN nearsim.collection AS place USING (collection_id)
            WHERE document.external_id = given.external_id COLLATE "C"
                AND (place.name = documents_named.collection OR documents_named.collection IS NULL))
        ORDER BY position LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'there is no document %', concat_ws(' in collection ', quote_nullable(unknown),
                quote_literal(collection)) USING ERRCODE = 'no_data_found';
        END IF;
        RAISE EXCEPTION 'documents % and % are in different collections, which are never compared',
            quote_literal(a), quote_literal(b) USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.documents_named(text, text, text) IS
    'Internal (used by pin_pair, veto_pair and undo_verdict): the doc_ids of two documents of one collection, by their external_id';
