-- The three band hashes, over the positions of a sketch as numbers; bit for bit those of the package.

-- A product modulo 2^64 of a word and a factor, of which the signed upper and lower halves are written out: the
-- products of halves stay within a bigint, and shifts to the left drop what is above it. 1.5 times as fast as numeric.
CREATE FUNCTION nearsim.fmix64(words bigint[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    low constant bigint := 4294967295;
    mixed bigint[];
    word bigint;
    part bigint;
BEGIN
    FOREACH word IN ARRAY words LOOP
        word := word # ((word >> 33) & 2147483647);
        part := (word & low) * -313160499;
        word := (((part >> 32) + (word >> 32) * -313160499 + (word & low) * -11423784) << 32) | (part & low);
        word := word # ((word >> 33) & 2147483647);
        part := (word & low) * 444984403;
        word := (((part >> 32) + (word >> 32) * 444984403 + (word & low) * -993084930) << 32) | (part & low);
        mixed := mixed || (word # ((word >> 33) & 2147483647));
    END LOOP;
    RETURN mixed;
END
$$;
COMMENT ON FUNCTION nearsim.fmix64(bigint[]) IS
    'Part of band_keys: each word mixed by the finaliser of MurmurHash3';

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
    'Part of band_keys: the hash mix64 of each band, of which the lower 56 bits count';

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
    'Part of band_keys: the hash xor of each band';

CREATE FUNCTION nearsim.join_bands(positions bigint[], bands integer, rows integer) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    hashes bigint[];
    hash bigint;
    joined bytea;
BEGIN
    FOR band IN 0 .. bands - 1 LOOP
        hash := 5381;
        joined := convert_to(array_to_string(positions[band * rows + 1 : (band + 1) * rows], '.'), 'UTF8');
        FOR place IN 0 .. octet_length(joined) - 1 LOOP
            hash := ((hash * 33) # get_byte(joined, place)) & 4294967295;
        END LOOP;
        hashes := hashes || hash;
    END LOOP;
    RETURN hashes;
END
$$;
COMMENT ON FUNCTION nearsim.join_bands(bigint[], integer, integer) IS
    'Part of band_keys: the hash djb2a-joined of each band';
