-- A recipe has one rule or an array of rules. White space around the names in a rule, and empty names, are removed.
CREATE FUNCTION nearsim.keep_rules(recipe jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
RETURN ARRAY(
    SELECT concat_ws(':', split_part(given.rule, ':', 1), nullif(array_to_string(ARRAY(
        SELECT regexp_replace(named.name, '^\s+|\s+$', '', 'g')
        FROM unnest(string_to_array(substr(given.rule, strpos(given.rule, ':') + 1), ','))
            WITH ORDINALITY AS named (name, place)
        WHERE given.rule LIKE '%:%' AND named.name ~ '\S' ORDER BY named.place), ','), ''))
    FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(recipe #> '{cluster,keep}') = 'array'
        THEN recipe #> '{cluster,keep}' ELSE jsonb_build_array(recipe #> '{cluster,keep}') END)
        WITH ORDINALITY AS given (rule, place)
    WHERE given.rule IS NOT NULL ORDER BY given.place);
COMMENT ON FUNCTION nearsim.keep_rules(jsonb) IS
    'Internal (used by combined_clusters): the rules of the keep policy of a recipe, in order';
