CREATE FUNCTION nearsim.mix_bands(positions bigint[], bands integer, rows integer, seed bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    low constant bigint := 4294967295;
    start constant bigint := nearsim.signed(nearsim.random_word(seed, 'band keys mix64', 1));
    hashes bigint[];
    word bigint;
    part bigint;
BEGIN
    FOR band IN 0 .. bands - 1 LOOP
        word := start;
        FOR place IN band * rows + 1 .. (band + 1) * rows LOOP
            word := word # positions[place];
            part := (word & low) * -313160499;
            word := (((part >> 32) + (word >> 32) * -313160499 + (word & low) * -11423784) << 32) | (part & low);
            word := word # ((word >> 32) & low);
        END LOOP;
        hashes := hashes || word;
    END LOOP;
    RETURN nearsim.fmix64(hashes);
END
$$;
COMMENT ON FUNCTION nearsim.mix_bands(bigint[], integer, integer, bigint) IS
    'Internal (used by band_keys): the hash of each band under the band hash mix64, of which the lower 56 bits are used';
