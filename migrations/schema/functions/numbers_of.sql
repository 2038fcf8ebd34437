-- The runs of digits in the text that a recipe reads, in order. As far as the recipe asks for it, variants of characters such
-- as full-width digits are unified, and HTML tags are roughly removed. Empty if the recipe compares vectors;
-- NULL if it compares the article of a page (normalise.html = main), which SQL cannot extract.
CREATE FUNCTION nearsim.numbers_of(doc_id bigint, recipe jsonb) RETURNS text[]
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
    content text;
    closed int;
BEGIN
    IF recipe #>> '{sketch,input}' = 'vector' THEN
        RETURN '{}';
    END IF;
    IF recipe #>> '{normalise,html}' = 'main' THEN
        RETURN NULL;
    END IF;
    SELECT concat_ws(E'\n', CASE WHEN recipe -> 'fields' ? 'title' THEN document.title END,
        CASE WHEN recipe -> 'fields' ? 'body' THEN nearsim.body_of(numbers_of.doc_id) END)
    INTO content FROM nearsim.document WHERE document.doc_id = numbers_of.doc_id;
    IF recipe #>> '{normalise,html}' = 'true' THEN
        -- The time is linear, because every attempt to match succeeds: an unclosed element extends to the end of the text, and
        -- the text after the last ">" is not searched for tags. The first quantifier makes the whole expression non-greedy.
        content := regexp_replace(content, '<{1,1}?(script\y.*?(</script>|$)|style\y.*?(</style>|$)'
            || '|noscript\y.*?(</noscript>|$)|template\y.*?(</template>|$))', ' ', 'gi');
        closed := coalesce(length(content) + 1 - nullif(strpos(reverse(content), '>'), 0), 0);
        content := concat_ws(' ', regexp_replace(left(content, closed), '<[^>]*>', ' ', 'g'), substr(content, closed + 1));
        content := regexp_replace(content, '&#x?[0-9a-f]+;', ' ', 'gi');
    END IF;
    IF recipe #>> '{normalise,unicode}' = 'nfkc' THEN
        -- Normalised in pieces, because the time is quadratic in the length of a run of combining characters. Cutting changes
        -- no number, because digits do not combine.
        content := (SELECT coalesce(string_agg(normalize(piece[1], NFKC), '' ORDER BY place), '')
            FROM regexp_matches(content, '.{1,200}', 'g') WITH ORDINALITY AS found (piece, place));
    END IF;
    RETURN ARRAY(
        SELECT run[1] FROM regexp_matches(content, '[0-9]+' COLLATE "C", 'g') WITH ORDINALITY AS found (run, place)
        ORDER BY place);
END
$$;
COMMENT ON FUNCTION nearsim.numbers_of(bigint, jsonb) IS 'Internal (used by why): the runs of digits in a document''s text';
