-- The ids of an application's rows as they were before they became text; NULL for what never was one. They are inlined, so
-- that the application's index serves.
CREATE FUNCTION nearsim.as_bigint(external_id text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (external_id COLLATE "C") ~ '^-?[0-9]{1,19}$' THEN
    CASE WHEN CAST(external_id AS numeric) BETWEEN -9223372036854775808 AND 9223372036854775807
        THEN CAST(external_id AS bigint) END
END;
COMMENT ON FUNCTION nearsim.as_bigint(text) IS
    'Part of attach: the number that an external_id is, NULL where it is none of 64 bits';
