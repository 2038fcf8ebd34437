CREATE FUNCTION nearsim.buckets_of(doc_id bigint, profile text DEFAULT NULL)
RETURNS TABLE (band_no smallint, bucket_hash bigint)
LANGUAGE plpgsql STABLE ROWS 32 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    live record;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(nearsim.collection_of(doc_id), profile, doc_id);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT CAST((given.key >> 56) & 255 AS smallint), given.key
        FROM unnest(nearsim.keys_of(live.generation_id, doc_id)) WITH ORDINALITY AS given (key, place)
        ORDER BY given.place;
END
$$;
COMMENT ON FUNCTION nearsim.buckets_of(bigint, text) IS
    'The buckets of a document. Rows of nearsim.band with the same bucket_hash belong to documents that may be similar to it; these are heads only, because twins share the rows of their head. No rows if the document is not indexed or has no features';
