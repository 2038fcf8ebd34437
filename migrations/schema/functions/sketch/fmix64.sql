-- Part of the band hashes, which equal those of the Python package bit for bit. The product of a word and a factor modulo 2^64
-- is computed from their signed upper and lower halves: the product of two halves fits a bigint, and left shifts drop the
-- excess bits. This is 1.5 times as fast as numeric.
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
COMMENT ON FUNCTION nearsim.fmix64(bigint[]) IS 'Internal (used by band_keys): each word mixed by the finaliser of MurmurHash3';
