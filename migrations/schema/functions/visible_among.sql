CREATE FUNCTION nearsim.visible_among(doc_ids bigint[], OUT home integer, OUT known bigint[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    homes integer[];
BEGIN
    SELECT array_agg(DISTINCT found.collection_id), array_agg(found.doc_id ORDER BY found.place) INTO homes, known
    FROM (
        SELECT named.collection_id, named.doc_id, min(given.place) AS place
        FROM unnest(doc_ids) WITH ORDINALITY AS given (doc_id, place)
        CROSS JOIN LATERAL (
            SELECT document.collection_id, document.doc_id FROM nearsim.document
            WHERE document.doc_id = given.doc_id LIMIT 1
        ) AS named
        GROUP BY named.collection_id, named.doc_id
    ) AS found;
    IF cardinality(homes) > 1 THEN
        RAISE EXCEPTION 'the documents are of several collections: %', (
            SELECT string_agg(collection.name, ', ' ORDER BY collection.name) FROM nearsim.collection
            WHERE collection.collection_id = ANY (homes)) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    home := homes[1];
END
$$;
COMMENT ON FUNCTION nearsim.visible_among(bigint[]) IS
    'Internal (used by dedupe): the existing documents of a list, each once and in order, and their collection; raises an error if they are in several collections';
