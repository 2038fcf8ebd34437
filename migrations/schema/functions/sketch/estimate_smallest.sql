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
    'Internal (used by estimate_under): the fraction of the smallest ids in the union of two documents that both documents have; exact if both documents are short';
