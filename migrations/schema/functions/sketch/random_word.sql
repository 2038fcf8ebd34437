-- SplitMix64, whose initial state is a hash of the purpose and the seed. Products of two 64-bit numbers need numeric.
CREATE FUNCTION nearsim.random_word(seed bigint, purpose text, place integer) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    digest constant bytea := sha256(convert_to(purpose || ':' || seed, 'UTF8'));
    size constant numeric := 18446744073709551616;
    word numeric := 0;
    bits bigint;
BEGIN
    FOR byte IN REVERSE 7 .. 0 LOOP
        word := word * 256 + get_byte(digest, byte);
    END LOOP;
    word := (word + 11400714819323198485 * place) % size;
    bits := nearsim.signed(word) # nearsim.signed(div(word, 1073741824));
    word := nearsim.unsigned(bits) * 13787848793156543929 % size;
    bits := nearsim.signed(word) # nearsim.signed(div(word, 134217728));
    word := nearsim.unsigned(bits) * 10723151780598845931 % size;
    RETURN nearsim.unsigned(nearsim.signed(word) # nearsim.signed(div(word, 2147483648)));
END
$$;
COMMENT ON FUNCTION nearsim.random_word(bigint, text, integer) IS
    'Internal (used by band_keys): the unsigned 64-bit number at a place, from 1, of the random stream for a seed and a purpose';
