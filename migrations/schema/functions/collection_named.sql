-- Runs as the caller: a collection that row-level security hides does not exist.
CREATE FUNCTION nearsim.collection_named(collection text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids integer[];
    names text;
BEGIN
    SELECT array_agg(existing.collection_id), string_agg(quote_literal(existing.name), ', ' ORDER BY existing.name)
    INTO ids, names
    FROM nearsim.collection AS existing
    WHERE existing.name = collection_named.collection OR collection_named.collection IS NULL;
    IF ids IS NULL AND collection_named.collection IS NOT NULL THEN
        SELECT string_agg(quote_literal(existing.name), ', ' ORDER BY existing.name) INTO names
        FROM nearsim.collection AS existing;
        RAISE EXCEPTION 'collection % does not exist in database %; existing collections: %',
            quote_literal(collection_named.collection), current_database(), coalesce(names, 'none yet')
            USING ERRCODE = 'no_data_found';
    ELSIF ids IS NULL THEN
        RAISE EXCEPTION 'no collection exists yet in database %', current_database() USING ERRCODE = 'no_data_found';
    ELSIF cardinality(ids) > 1 THEN
        RAISE EXCEPTION 'there are several collections; name one of: %', names
            USING ERRCODE = 'ambiguous_parameter';
    END IF;
    RETURN ids[1];
END
$$;
COMMENT ON FUNCTION nearsim.collection_named(text) IS
    'Internal (used by functions that take a collection): the collection_id of a name, or of the only collection if the name is NULL; raises an error if there is no such collection, or if the name is NULL and there are several';
