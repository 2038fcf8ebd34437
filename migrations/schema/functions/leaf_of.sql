-- Generations of small collections have numbers from 1,000,000 on and share their tables.
CREATE FUNCTION nearsim.leaf_of(parent text, generation_id integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN parent || CASE WHEN generation_id < 1000000 THEN '_' || generation_id ELSE '_shared' END;
COMMENT ON FUNCTION nearsim.leaf_of(text, integer) IS
    'Internal: name in nearsim_index of the table, or of the function, that has the rows of a generation';

CREATE FUNCTION nearsim.rows_of(parent text, generation_id integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN format(CASE WHEN generation_id < 1000000 THEN 'nearsim_index.%I'
        ELSE '(SELECT * FROM nearsim_index.%I WHERE generation_id = %s)' END,
    nearsim.leaf_of(parent, generation_id), generation_id);
COMMENT ON FUNCTION nearsim.rows_of(text, integer) IS
    'Internal: what has the rows of a generation only, as the text of a FROM item that needs an alias';
