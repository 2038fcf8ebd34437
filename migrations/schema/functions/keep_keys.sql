-- The result has one number for each rule. Arrays are compared item by item, so the first rule that distinguishes two
-- documents decides. A document for which a rule has no value gets Infinity, so that it comes last.
CREATE FUNCTION nearsim.keep_keys(rules text[], score double precision, title text, body text, body_length integer,
    source text, url text, published_at timestamptz, created_at timestamptz, attributes jsonb)
RETURNS double precision[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rule text;
    name text;
    value jsonb;
    key double precision;
    keys double precision[] := '{}';
BEGIN
    FOREACH rule IN ARRAY rules LOOP
        name := substr(rule, strpos(rule, ':') + 1);
        key := CASE split_part(rule, ':', 1)
            WHEN 'source' THEN array_position(string_to_array(name, ','), source)
            WHEN 'longest' THEN -coalesce(length(title), 0) - coalesce(length(body), body_length, 0)
            WHEN 'earliest' THEN date_part('epoch', coalesce(published_at, created_at))
            WHEN 'latest' THEN -date_part('epoch', coalesce(published_at, created_at))
            WHEN 'central' THEN -score
            WHEN 'highest' THEN -CAST(jsonb_path_query_first(nearsim.value_of(name, source, attributes),
                'strict $.double()', silent => true) AS double precision)
        END;
        IF rule LIKE 'has:%' THEN
            value := CASE
                WHEN name = 'title' THEN to_jsonb(title)
                WHEN name = 'url' THEN to_jsonb(url)
                WHEN name = 'published_at' THEN to_jsonb(published_at)
                WHEN name IN ('text', 'body') AND coalesce(length(body), body_length, 0) > 0 THEN 'true'
                ELSE nearsim.value_of(name, source, attributes)
            END;
            IF value NOT IN ('[]', '{}') AND value #>> '{}' ~ '\S' THEN
                key := 0;
            END IF;
        END IF;
        keys := keys || coalesce(key, 'Infinity');
    END LOOP;
    RETURN keys;
END
$$;
COMMENT ON FUNCTION nearsim.keep_keys(text[], double precision, text, text, integer, text, text, timestamptz, timestamptz, jsonb) IS
    'Internal (used by indexing and combined_clusters): the numbers by which the rules of a keep policy rank a document; the document with the smallest array is kept';
