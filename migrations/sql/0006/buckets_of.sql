-- Runs with the rights of its owner: readers that are kept apart may not read sketches.
CREATE FUNCTION nearsim.keys_of(generation_id integer, doc_id bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own bytea;
BEGIN
    IF NOT nearsim.sees_generation(generation_id) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT sketch FROM nearsim.%I WHERE doc_id = $1', 'signature_' || generation_id)
        INTO own USING doc_id;
    RETURN (
        SELECT nearsim.keys_under(generation.recipe, generation.bands, generation.rows, own)
        FROM nearsim.generation WHERE generation.generation_id = keys_of.generation_id);
END
$$;
COMMENT ON FUNCTION nearsim.keys_of(integer, bigint) IS
    'Part of buckets_of: the bucket_hash of each band of a document in a generation that the caller may read';

CREATE FUNCTION nearsim.buckets_of(doc_id bigint, profile text DEFAULT NULL)
RETURNS TABLE (band_no smallint, bucket_hash bigint)
LANGUAGE plpgsql STABLE ROWS 32 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    live record;
BEGIN
    SELECT * INTO STRICT live FROM nearsim.serving(nearsim.collection_of(doc_id), profile);
    RETURN QUERY
        SELECT CAST((given.key >> 56) & 255 AS smallint), given.key
        FROM unnest(nearsim.keys_of(live.generation_id, doc_id)) WITH ORDINALITY AS given (key, place)
        ORDER BY given.place;
END
$$;
COMMENT ON FUNCTION nearsim.buckets_of(bigint, text) IS
    'The buckets of a document, under whose bucket_hash nearsim.band has the documents that may be similar (the first of each group of twins stands for all); none for one that is not indexed or has no features';
