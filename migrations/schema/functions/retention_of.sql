-- The interval is in seconds, because the length of days and months depends on the time zone.
CREATE FUNCTION nearsim.retention_of(recipe jsonb) RETURNS interval
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN make_interval(secs => CAST(extract(epoch FROM CAST(nullif(recipe #>> '{retain,age}', 'none') AS interval)) AS double precision));
COMMENT ON FUNCTION nearsim.retention_of(jsonb) IS
    'Internal (used by views): how long a recipe keeps documents in the index; NULL for unlimited';
