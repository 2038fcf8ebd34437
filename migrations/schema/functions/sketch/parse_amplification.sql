-- An amplification is written from the outside in. Each step is (least, count): at least so many of count bands or groups must
-- agree. The outermost step comes first. The innermost "and" is not a step, but the number of rows of a band.
CREATE FUNCTION nearsim.parse_amplification(amplification text, OUT steps integer[], OUT rows integer)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
    step constant text := '((and|or)\s*\(|at_least\s*\(\s*\d{1,9}\s*,)\s*\d{1,9}';
    found text[];
    outermost_first text[] := '{}';
    kind text;
    least integer;
    count integer;
BEGIN
    FOR found IN
        SELECT regexp_matches(amplification, '(and|or|at_least)\s*\(\s*((\d{1,9})\s*,\s*)?(\d{1,9})', 'g')
    LOOP
        outermost_first := outermost_first || ARRAY[found];
    END LOOP;
    IF amplification !~ format('^\s*%s(\s*,\s*%s)*(\s*\))+\s*$', step, step)
        OR length(translate(amplification, translate(amplification, ')', ''), '')) <> array_length(outermost_first, 1)
    THEN
        RAISE EXCEPTION '% is not an amplification', quote_literal(amplification)
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'It is written from the outside in, as in or(40, and(3)) for 40 bands of 3 rows, and(4, or(4)) or at_least(3, 40, and(3)).';
    END IF;
    rows := 1;
    steps := '{}';
    FOR place IN 1 .. array_length(outermost_first, 1) LOOP
        kind := outermost_first[place][1];
        count := outermost_first[place][4];
        least := CASE kind WHEN 'and' THEN CAST(count AS text) WHEN 'or' THEN '1' ELSE outermost_first[place][3] END;
        IF least NOT BETWEEN 1 AND count OR count > 65536 THEN
            RAISE EXCEPTION '% of % is out of range in the amplification %', least, count, quote_literal(amplification)
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
        IF kind = 'and' AND place = array_length(outermost_first, 1) THEN
            rows := count;
        ELSE
            steps := steps || ARRAY[[least, count]];
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.parse_amplification(text) IS
    'Internal (used by is_candidate and match_probability): an amplification as an array of steps (least, count), the outermost first, and the number of rows of a band';
