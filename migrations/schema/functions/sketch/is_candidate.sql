-- Each step groups consecutive bands, or consecutive groups of the step before; both are numbered from 0. Documents without a
-- shared band are not candidates.
CREATE FUNCTION nearsim.is_candidate(recipe jsonb, shared smallint[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    amplification constant text := recipe #>> '{match,amplification}';
    agreeing integer[] := shared;
    steps integer[];
BEGIN
    IF amplification IS NULL THEN
        RETURN cardinality(shared) >= CAST(recipe #>> '{match,min_shared_bands}' AS integer);
    END IF;
    SELECT parsed.steps INTO steps FROM nearsim.parse_amplification(amplification) AS parsed;
    FOR step IN REVERSE coalesce(array_length(steps, 1), 0) .. 1 LOOP
        agreeing := ARRAY(
            SELECT number / steps[step][2] FROM unnest(agreeing) AS number
            GROUP BY 1 HAVING count(*) >= steps[step][1]);
    END LOOP;
    RETURN cardinality(agreeing) > 0;
END
$$;
COMMENT ON FUNCTION nearsim.is_candidate(jsonb, smallint[]) IS
    'Whether two documents that share these bands are candidates under a recipe, which nearsim.live_generations shows. Bands are numbered from 0; for bottom_k, rare and winnow only their count matters';
