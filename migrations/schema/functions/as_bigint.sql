-- This function and as_uuid convert an external_id back to the type of the attached table's key. They return NULL if the key
-- cannot have had this value. The planner inlines both, so that the table's index is used.
CREATE FUNCTION nearsim.as_bigint(external_id text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (external_id COLLATE "C") ~ '^-?[0-9]{1,19}$' THEN
    CASE WHEN CAST(external_id AS numeric) BETWEEN -9223372036854775808 AND 9223372036854775807
        THEN CAST(external_id AS bigint) END
END;
COMMENT ON FUNCTION nearsim.as_bigint(text) IS
    'Internal (used by attach): an external_id as a bigint; NULL if it is not a 64-bit integer';
