CREATE FUNCTION nearsim.signed(value numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CAST(CASE WHEN value >= 9223372036854775808 THEN value - 18446744073709551616 ELSE value END AS bigint);
COMMENT ON FUNCTION nearsim.signed(numeric) IS
    'The bigint that has the same bits as an unsigned 64-bit number; nearsim.band stores hashes in this way';
