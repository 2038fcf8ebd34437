CREATE FUNCTION nearsim.unsigned(value bigint) RETURNS numeric
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN value < 0 THEN value + 18446744073709551616 ELSE value END;
COMMENT ON FUNCTION nearsim.unsigned(bigint) IS 'The unsigned 64-bit number with the same bits as a bigint';
