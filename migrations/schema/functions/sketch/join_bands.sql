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
    'Internal (used by band_keys): the hash of each band under the band hash djb2a-joined';
