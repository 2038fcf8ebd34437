CREATE FUNCTION nearsim.body_of(doc_id bigint) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT document.body FROM nearsim.document WHERE document.doc_id = body_of.doc_id;
END;
COMMENT ON FUNCTION nearsim.body_of(bigint) IS
    'The text of a document, wherever its collection keeps it';

-- The runs of digits of the text that a recipe reads, in their order. Forms of characters (full-width digits, for one)
-- are made alike where the recipe does so; tags are left out, roughly, where it strips HTML.
CREATE FUNCTION nearsim.numbers_of(doc_id bigint, recipe jsonb) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    content text;
BEGIN
    SELECT concat_ws(E'\n', CASE WHEN recipe -> 'fields' ? 'title' THEN document.title END,
        CASE WHEN recipe -> 'fields' ? 'body' THEN nearsim.body_of(numbers_of.doc_id) END)
    INTO content FROM nearsim.document WHERE document.doc_id = numbers_of.doc_id;
    IF CAST(recipe #>> '{normalise,html}' AS boolean) THEN
        -- The first quantifier decides that the whole matches as little as it can.
        content := regexp_replace(content, '<{1,1}?(script|style|noscript|template)\y.*?</\1>', ' ', 'gi');
        content := regexp_replace(content, '<[^>]*>|&#x?[0-9a-f]+;', ' ', 'gi');
    END IF;
    IF recipe #>> '{normalise,unicode}' = 'nfkc' THEN
        content := normalize(content, NFKC);
    END IF;
    RETURN ARRAY(
        SELECT run[1] FROM regexp_matches(content, '[0-9]+' COLLATE "C", 'g') WITH ORDINALITY AS found (run, place)
        ORDER BY place);
END
$$;
COMMENT ON FUNCTION nearsim.numbers_of(bigint, jsonb) IS
    'Part of why: the runs of digits in a document''s text';

CREATE FUNCTION nearsim.numbers_missing(there text[], here text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT coalesce(array_agg(number ORDER BY place), '{}')
    FROM (
        SELECT number, place, row_number() OVER (PARTITION BY number ORDER BY place) AS occurrence
        FROM unnest(there) WITH ORDINALITY AS given (number, place)
    ) AS counted
    WHERE (number, occurrence) NOT IN (
        SELECT number, row_number() OVER (PARTITION BY number)
        FROM unnest(here) AS given (number));
END;
COMMENT ON FUNCTION nearsim.numbers_missing(text[], text[]) IS
    'Part of why: those of some numbers that are not among others, as often as they are missing';
