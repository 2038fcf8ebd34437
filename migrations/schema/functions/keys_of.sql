CREATE FUNCTION nearsim.keys_of(generation_id integer, doc_id bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own bytea;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT sketch FROM %s AS own WHERE doc_id = $1', nearsim.rows_of('signature', generation_id))
        INTO own USING doc_id;
    RETURN (
        SELECT nearsim.keys_under(generation.recipe, generation.bands, generation.rows, own)
        FROM nearsim.generation WHERE generation.generation_id = keys_of.generation_id);
END
$$;
COMMENT ON FUNCTION nearsim.keys_of(integer, bigint) IS
    'Internal (used by buckets_of): the bucket_hash of each band of a document in a generation; NULL if the caller may not read the generation';
