-- For the policies of tables that belong to a single collection. Runs as the role that reads such a table, and reads the
-- role's grants on the collection through the policy of collection_access. Relies on collection_access_pkey.
CREATE FUNCTION nearsim.may_see_collection(collection_id integer) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM nearsim_index.collection_access AS access WHERE access.collection_id = may_see_collection.collection_id);
END
$$;
COMMENT ON FUNCTION nearsim.may_see_collection(integer) IS
    'Internal (used by the policies of partitions): whether a collection was granted to current_user';
