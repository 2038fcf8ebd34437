CREATE FUNCTION nearsim.common_collection(a bigint, b bigint) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home constant integer := nearsim.collection_of(a);
BEGIN
    IF home <> nearsim.collection_of(b) THEN
        RAISE EXCEPTION 'documents % and % are in different collections, and only documents of the same collection are compared', a, b
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF a = b THEN
        RAISE EXCEPTION 'document % cannot be compared with itself', a USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN home;
END
$$;
COMMENT ON FUNCTION nearsim.common_collection(bigint, bigint) IS
    'Internal (used by why): the collection of two documents; raises an error unless both exist, differ and share a collection';
