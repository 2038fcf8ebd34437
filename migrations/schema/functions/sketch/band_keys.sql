CREATE FUNCTION nearsim.band_keys(
    sketch bytea, bands integer, rows integer, seed bigint DEFAULT 1, bytes_per_position integer DEFAULT 4,
    hash text DEFAULT 'mix64', is_signed boolean DEFAULT false)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    width constant integer := bytes_per_position;
    length constant integer := octet_length(sketch);
    positions bigint[];
    hashes bigint[];
BEGIN
    IF width NOT IN (1, 4, 8) OR length % width <> 0 THEN
        RAISE EXCEPTION 'a sketch of % bytes does not fit % bytes_per_position; choose 1, 4 or 8', length, width
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF bands NOT BETWEEN 1 AND 256 THEN
        RAISE EXCEPTION '% bands are out of range: the band number is a byte; choose 1..256', bands
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF rows < 1 OR CAST(bands AS bigint) * rows > length / width THEN
        RAISE EXCEPTION '% bands of % rows do not fit a sketch of % positions', bands, rows, length / width
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    positions := nearsim.positions(sketch, width, is_signed AND hash = 'djb2a-joined');
    hashes := CASE hash
        WHEN 'mix64' THEN nearsim.mix_bands(positions, bands, rows, seed)
        WHEN 'xor' THEN nearsim.xor_bands(positions, bands, rows, seed)
        WHEN 'djb2a-joined' THEN nearsim.join_bands(positions, bands, rows)
    END;
    IF hashes IS NULL THEN
        RAISE EXCEPTION 'there is no band hash %; choose one of mix64, xor, djb2a-joined', quote_literal(hash)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN ARRAY(
        SELECT (found.hash & 72057594037927935) | ((found.place - 1) << 56)
        FROM unnest(hashes) WITH ORDINALITY AS found (hash, place) ORDER BY found.place);
END
$$;
COMMENT ON FUNCTION nearsim.band_keys(bytea, integer, integer, bigint, integer, text, boolean) IS
    'The bucket_hash of each band of a sketch, as stored in nearsim.band. Take bands and rows from nearsim.live_generations, and seed and hash from its recipe. bytes_per_position is 8 for minhash with prime32, 1 for hyperplane, and 4 otherwise; is_signed is true for minhash with java32. buckets_of(doc_id) takes all of these from the recipe and supports every family';
