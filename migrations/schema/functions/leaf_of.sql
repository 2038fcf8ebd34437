-- Generations with numbers from 100,000,000 on have tables of signatures and bands of their own; all share pairs and members.
CREATE FUNCTION nearsim.is_shared(parent text, generation_id integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN generation_id < 100000000 OR parent IN ('signed', 'similar_pair', 'cluster_member');
COMMENT ON FUNCTION nearsim.is_shared(text, integer) IS
    'Internal (used by leaf_of): whether the table that has the rows of a generation has rows of other generations as well';

CREATE FUNCTION nearsim.leaf_of(parent text, generation_id integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN parent = 'signed' AND generation_id >= 100000000 THEN 'signed_document'
    WHEN parent = 'signed' THEN 'signature_shared'
    WHEN nearsim.is_shared(parent, generation_id) THEN parent || '_shared' ELSE parent || '_' || generation_id END;
COMMENT ON FUNCTION nearsim.leaf_of(text, integer) IS
    'Internal: name in nearsim_index of the table, or of the function, that has the rows of a generation; for signed, the table of its signatures by head';

-- For a subquery with the number the planner expects as many rows as a generation has on average; for the number itself one
-- row, if statistics of the table only have other generations. They are collected when a large generation is built.
CREATE FUNCTION nearsim.rows_of(parent text, generation_id integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN format(CASE WHEN NOT nearsim.is_shared(parent, generation_id) THEN 'nearsim_index.%I'
        WHEN generation_id < 100000000 THEN '(SELECT * FROM nearsim_index.%I WHERE generation_id = (SELECT %s))'
        ELSE '(SELECT * FROM nearsim_index.%I WHERE generation_id = %s)' END,
    nearsim.leaf_of(parent, generation_id), generation_id);
COMMENT ON FUNCTION nearsim.rows_of(text, integer) IS
    'Internal: the rows of one generation, as the text of a FROM item that needs an alias';
