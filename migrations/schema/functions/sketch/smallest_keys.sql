-- A sketch of bottom_k has the smallest ids of a document, a sketch of rare has the rarest ids; both ascend as unsigned
-- numbers. If a document has fewer ids than the sketch has positions, the last id is repeated.
CREATE FUNCTION nearsim.smallest_keys(ids bigint[], bands integer, seed bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    keys bigint[] := nearsim.mix_bands(ids, bands, 1, seed);
    whole bigint;
BEGIN
    FOR place IN 2 .. bands LOOP
        IF ids[place] = ids[place - 1] THEN
            whole := coalesce(whole, (nearsim.mix_bands(ids, 1, cardinality(ids), seed))[1]);
            keys[place] := (nearsim.mix_bands(ARRAY[whole, place - 1], 1, 2, seed))[1];
        END IF;
    END LOOP;
    RETURN ARRAY(
        SELECT found.key & 72057594037927935
        FROM unnest(keys) WITH ORDINALITY AS found (key, place) ORDER BY found.place);
END
$$;
COMMENT ON FUNCTION nearsim.smallest_keys(bigint[], integer, bigint) IS
    'Internal (used by keys_under): the bucket_hash of each of the first ids of a bottom_k or rare sketch, all with band number 0';
