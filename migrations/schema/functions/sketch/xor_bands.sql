CREATE FUNCTION nearsim.xor_bands(positions bigint[], bands integer, rows integer, seed bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    prime constant bigint := 4294967311;
    multiplier constant bigint := 1 + nearsim.random_word(seed, 'band keys xor', 1) % 4294967295;
    addend constant bigint := nearsim.random_word(seed, 'band keys xor', 2) % prime;
BEGIN
    RETURN ARRAY(
        SELECT bit_xor(
            (position * (multiplier >> 16) % prime * 65536 + position * (multiplier & 65535) + addend) % prime)
        FROM unnest(positions[1 : bands * rows]) WITH ORDINALITY AS given (position, place)
        GROUP BY (place - 1) / rows ORDER BY (place - 1) / rows);
END
$$;
COMMENT ON FUNCTION nearsim.xor_bands(bigint[], integer, integer, bigint) IS
    'Internal (used by band_keys): the hash of each band under the band hash xor';
