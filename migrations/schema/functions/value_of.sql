CREATE FUNCTION nearsim.value_of(field text, source text, attributes jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN nullif(CASE WHEN field = 'source' THEN to_jsonb(source)
    ELSE coalesce(nullif(attributes -> field, 'null'), attributes #> string_to_array(field, '.')) END, 'null');
COMMENT ON FUNCTION nearsim.value_of(text, text, jsonb) IS
    'Internal (used by indexing): the value that a document has in a field of the recipe: its source, or an attribute by name or by path; NULL if it has none';
