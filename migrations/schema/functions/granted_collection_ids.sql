-- Row-level security of collection_access applies to the caller.
CREATE FUNCTION nearsim.granted_collection_ids(writable boolean DEFAULT false) RETURNS integer[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(
        SELECT access.collection_id FROM nearsim.collection_access AS access WHERE access.may_write OR NOT writable);
END
$$;
COMMENT ON FUNCTION nearsim.granted_collection_ids(boolean) IS
    'Internal (used by the policies): the collections that current_user was granted under isolation, or those it may write';
