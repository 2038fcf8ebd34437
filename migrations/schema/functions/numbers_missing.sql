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
    'Internal (used by why): the numbers of one list that are missing in another list; a number that occurs more often in the first list is missing as often as its count exceeds the other';
