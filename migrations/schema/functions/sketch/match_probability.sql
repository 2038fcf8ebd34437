-- The tail of the binomial distribution, summed from its largest term outwards and divided by the sum of all terms. So nothing
-- overflows, and probabilities near 0 and 1 are exact. Terms below 1e-150 of the largest term are left out.
CREATE FUNCTION nearsim.match_probability(
    s double precision, bands integer, rows integer, min_shared_bands integer DEFAULT 1)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shared double precision;
    largest integer;
    term double precision := 1;
    total double precision := 1;
    tail double precision := 0;
BEGIN
    IF bands < 1 OR rows < 1 THEN
        RAISE EXCEPTION '% bands of % rows are out of range; both must be 1 or more', bands, rows
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF NOT s BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a similarity of % is outside 0..1', s USING ERRCODE = 'invalid_parameter_value';
    ELSIF min_shared_bands < 1 THEN
        RAISE EXCEPTION 'a minimum of % shared bands is out of range; choose 1 or more', min_shared_bands
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF s = 0 OR min_shared_bands > bands OR rows * ln(s) < -345 THEN
        RETURN 0;
    END IF;
    shared := power(s, CAST(rows AS double precision));
    IF shared = 1 THEN
        RETURN 1;
    END IF;
    largest := least(floor((CAST(bands AS double precision) + 1) * shared), bands);
    IF largest >= min_shared_bands THEN
        tail := 1;
    END IF;
    FOR count IN REVERSE largest - 1 .. 0 LOOP
        term := term * (count + 1) / (bands - count) * (1 - shared) / shared;
        EXIT WHEN term < 1e-150;
        total := total + term;
        IF count >= min_shared_bands THEN
            tail := tail + term;
        END IF;
    END LOOP;
    term := 1;
    -- Counts the steps from the largest term, because `largest + 1` may exceed the type integer.
    FOR step IN 1 .. bands - largest LOOP
        term := term * (bands - largest - step + 1) / (largest + step) * shared / (1 - shared);
        EXIT WHEN term < 1e-150;
        total := total + term;
        IF largest + step >= min_shared_bands THEN
            tail := tail + term;
        END IF;
    END LOOP;
    RETURN tail / total;
END
$$;
COMMENT ON FUNCTION nearsim.match_probability(double precision, integer, integer, integer) IS
    'The probability that two documents of similarity s share at least min_shared_bands bands, if sketches have the given number of bands with the given number of rows each. With min_shared_bands = 1 it is 1 - (1 - s^rows)^bands';

CREATE FUNCTION nearsim.match_probability(s double precision, amplification text) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known record;
    chance double precision;
BEGIN
    SELECT * INTO STRICT known FROM nearsim.parse_amplification(amplification);
    chance := nearsim.match_probability(s, 1, known.rows);
    FOR place IN REVERSE coalesce(array_length(known.steps, 1), 0) .. 1 LOOP
        chance := least(nearsim.match_probability(chance, known.steps[place][2], 1, known.steps[place][1]), 1);
    END LOOP;
    RETURN chance;
END
$$;
COMMENT ON FUNCTION nearsim.match_probability(double precision, text) IS
    'The probability that two documents become candidates under an amplification such as or(40, and(3)), if they agree in one position with probability s';
