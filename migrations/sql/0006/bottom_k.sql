-- Sketches of the family bottom_k: the smallest ids of a document, ascending as unsigned numbers. A document of fewer
-- ids repeats the last one.
CREATE FUNCTION nearsim.smallest_keys(ids bigint[], bands integer, seed bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    keys bigint[] := nearsim.mix_bands(ids, bands, 1, seed);
    whole bigint;
BEGIN
    FOR place IN 2 .. bands LOOP
        IF ids[place] = ids[place - 1] THEN
            whole := coalesce(whole, (nearsim.mix_bands(ids, 1, cardinality(ids), seed))[1]);
            keys[place] := (nearsim.mix_bands(ARRAY[whole, place - 1], 1, 2, seed))[1];
        END IF;
    END LOOP;
    RETURN ARRAY(
        SELECT found.key & 72057594037927935
        FROM unnest(keys) WITH ORDINALITY AS found (key, place) ORDER BY found.place);
END
$$;
COMMENT ON FUNCTION nearsim.smallest_keys(bigint[], integer, bigint) IS
    'Part of keys_under: the bucket_hash of each of the smallest ids of a sketch of bottom_k, all under band number 0';

CREATE FUNCTION nearsim.estimate_smallest(a bigint[], b bigint[]) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k constant integer := cardinality(a);
    are_whole constant boolean := coalesce(a[k] = a[k - 1] AND b[k] = b[k - 1], false);
BEGIN
    RETURN (
        SELECT count(*) FILTER (WHERE sample.sides = 2) / CAST(count(*) AS double precision)
        FROM (
            SELECT count(*) AS sides
            FROM (
                SELECT DISTINCT left_one FROM unnest(a) AS left_one
                UNION ALL
                SELECT DISTINCT right_one FROM unnest(b) AS right_one
            ) AS given (id)
            GROUP BY given.id ORDER BY given.id # (-9223372036854775808) LIMIT CASE WHEN NOT are_whole THEN k END
        ) AS sample);
END
$$;
COMMENT ON FUNCTION nearsim.estimate_smallest(bigint[], bigint[]) IS
    'Part of estimate_under: the share of the smallest ids of two documents together that both have; exact for two short documents';
