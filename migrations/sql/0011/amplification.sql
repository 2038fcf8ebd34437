-- An amplification is written from the outside in, one step in the other. Steps are (least, count) from the outermost on,
-- without the innermost "and", which is a band of so many rows.
CREATE FUNCTION nearsim.steps_of(amplification text, OUT steps integer[], OUT rows integer)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
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
        RAISE EXCEPTION '% is no amplification', quote_literal(amplification)
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
            RAISE EXCEPTION '% of % is impossible in the amplification %', least, count, quote_literal(amplification)
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
COMMENT ON FUNCTION nearsim.steps_of(text) IS
    'Part of meets and match_probability: an amplification as steps above the bands, how many of how many must agree, the outermost first, and the rows of a band';

CREATE FUNCTION nearsim.amplification_of(recipe jsonb, bands integer, rows integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN coalesce(recipe #>> '{match,amplification}',
    CASE WHEN CAST(recipe #>> '{match,min_shared_bands}' AS integer) = 1 THEN format('or(%s', bands)
        ELSE format('at_least(%s, %s', recipe #>> '{match,min_shared_bands}', bands) END
    || CASE WHEN rows > 1 THEN format(', and(%s)', rows) ELSE '' END || ')');
COMMENT ON FUNCTION nearsim.amplification_of(jsonb, integer, integer) IS
    'Part of why_not and the view profiles: which shared bands make two documents candidates, as an amplification';

-- The groups of a step are consecutive: bands and groups are told by their numbers, from 0. What shares no band meets none.
CREATE FUNCTION nearsim.meets(recipe jsonb, shared smallint[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    amplification constant text := recipe #>> '{match,amplification}';
    agreeing integer[] := shared;
    steps integer[];
BEGIN
    IF amplification IS NULL THEN
        RETURN cardinality(shared) >= CAST(recipe #>> '{match,min_shared_bands}' AS integer);
    END IF;
    SELECT known.steps INTO steps FROM nearsim.steps_of(amplification) AS known;
    FOR place IN REVERSE coalesce(array_length(steps, 1), 0) .. 1 LOOP
        agreeing := ARRAY(
            SELECT number / steps[place][2] FROM unnest(agreeing) AS number
            GROUP BY 1 HAVING count(*) >= steps[place][1]);
    END LOOP;
    RETURN cardinality(agreeing) > 0;
END
$$;
COMMENT ON FUNCTION nearsim.meets(jsonb, smallint[]) IS
    'Part of similar_to and why_not: whether the bands that two documents share, by their numbers from 0, make them candidates under a recipe';

CREATE FUNCTION nearsim.match_probability(s double precision, amplification text) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known record;
    chance double precision;
BEGIN
    SELECT * INTO STRICT known FROM nearsim.steps_of(amplification);
    chance := nearsim.match_probability(s, 1, known.rows);
    FOR place IN REVERSE coalesce(array_length(known.steps, 1), 0) .. 1 LOOP
        chance := least(nearsim.match_probability(chance, known.steps[place][2], 1, known.steps[place][1]), 1);
    END LOOP;
    RETURN chance;
END
$$;
COMMENT ON FUNCTION nearsim.match_probability(double precision, text) IS
    'The probability that two documents, which agree in one position with probability s, meet an amplification such as or(40, and(3)), written from the outside in';

CREATE FUNCTION nearsim.curve(amplification text) RETURNS TABLE (similarity double precision, probability double precision)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 21 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT point.similarity, nearsim.match_probability(point.similarity, amplification)
    FROM (SELECT step / CAST(20 AS double precision) AS similarity FROM generate_series(0, 20) AS step) AS point
    ORDER BY point.similarity;
END;
COMMENT ON FUNCTION nearsim.curve(text) IS
    'The S-curve of an amplification such as and(4, or(4)): match_probability for the similarities 0, 0.05 ... 1';
