-- Generations with tables of their own for signatures and bands have numbers from 100,000,000 on; all share pairs and members.
CREATE FUNCTION nearsim.is_shared(parent text, generation_id integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN generation_id < 100000000 OR parent IN ('signed', 'similar_pair', 'cluster_member');
COMMENT ON FUNCTION nearsim.is_shared(text, integer) IS
    'Internal (used by leaf_of): whether the table that has the rows of a generation has those of others as well';

CREATE FUNCTION nearsim.leaf_of(parent text, generation_id integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN parent = 'signed' AND generation_id >= 100000000 THEN 'signed_document'
    WHEN parent = 'signed' THEN 'signature_shared'
    WHEN nearsim.is_shared(parent, generation_id) THEN parent || '_shared' ELSE parent || '_' || generation_id END;
COMMENT ON FUNCTION nearsim.leaf_of(text, integer) IS
    'Internal: name in nearsim_index of the table, or of the function, that has the rows of a generation; for signed the table that has its signatures by head';

-- Of the number of a subquery the planner expects as many rows as a generation has on average; of the number itself one, if
-- the statistics of the table have others only, which are collected when a large one is built.
CREATE FUNCTION nearsim.rows_of(parent text, generation_id integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN format(CASE WHEN NOT nearsim.is_shared(parent, generation_id) THEN 'nearsim_index.%I'
        WHEN generation_id < 100000000 THEN '(SELECT * FROM nearsim_index.%I WHERE generation_id = (SELECT %s))'
        ELSE '(SELECT * FROM nearsim_index.%I WHERE generation_id = %s)' END,
    nearsim.leaf_of(parent, generation_id), generation_id);
COMMENT ON FUNCTION nearsim.rows_of(text, integer) IS
    'Internal: what has the rows of a generation only, as the text of a FROM item that needs an alias';
