-- Reads one generation's table by name: its index on (bucket_hash, doc_id) counts buckets without a sort and without the
-- rows. Through the parent, generation_id would be fetched from every row.
CREATE FUNCTION nearsim.count_buckets(generation_id integer, OUT bucket_hash bigint, OUT members bigint)
RETURNS SETOF record
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_hashagg = off AS $$
BEGIN
    IF NOT nearsim.may_see_generation(generation_id)
        OR to_regclass('nearsim_index.' || nearsim.leaf_of('band', generation_id)) IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT bucket_hash, count(*) FROM %s AS band GROUP BY bucket_hash HAVING count(*) > 1', nearsim.rows_of('band', generation_id));
END
$$;
COMMENT ON FUNCTION nearsim.count_buckets(integer) IS
    'Internal (used by the view buckets): the buckets of a generation with two or more members, if the caller may read it';
