-- Positions have 1, 4 or 8 bytes, least significant byte first.
CREATE FUNCTION nearsim.positions(sketch bytea, bytes_per_position integer, is_signed boolean) RETURNS bigint[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT array_agg(
        CASE WHEN is_signed AND lower >= 2147483648 THEN lower - 4294967296
            WHEN bytes_per_position = 8 THEN lower | (CAST(get_byte(sketch, place + 4) AS bigint) << 32)
                | (CAST(get_byte(sketch, place + 5) AS bigint) << 40)
                | (CAST(get_byte(sketch, place + 6) AS bigint) << 48)
                | (CAST(get_byte(sketch, place + 7) AS bigint) << 56)
            ELSE lower END ORDER BY place)
    FROM generate_series(0, octet_length(sketch) - bytes_per_position, bytes_per_position) AS place
    CROSS JOIN LATERAL (
        SELECT CASE WHEN bytes_per_position = 1 THEN CAST(get_byte(sketch, place) AS bigint)
            ELSE CAST(get_byte(sketch, place) AS bigint) | (get_byte(sketch, place + 1) << 8)
                | (get_byte(sketch, place + 2) << 16) | (CAST(get_byte(sketch, place + 3) AS bigint) << 24)
            END AS lower
    ) AS four;
END;
COMMENT ON FUNCTION nearsim.positions(bytea, integer, boolean) IS
    'Internal (used by band_keys): the positions of a sketch, little-endian integers of 1, 4 or 8 bytes';
