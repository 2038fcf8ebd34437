CREATE FUNCTION nearsim.as_uuid(external_id text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (external_id COLLATE "C") ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN CAST(external_id AS uuid) END;
COMMENT ON FUNCTION nearsim.as_uuid(text) IS 'Internal (used by attach): an external_id as a uuid; NULL if it is not one';
