-- Generations with numbers from 100,000,000 on have their own tables of signatures and bands. All generations share the tables
-- of pairs and of cluster members.
CREATE FUNCTION nearsim.is_shared(parent text, generation_id integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN generation_id < 100000000 OR parent IN ('signed', 'similar_pair', 'cluster_member');
COMMENT ON FUNCTION nearsim.is_shared(text, integer) IS
    'Internal (used by leaf_of): whether the table with the rows of a generation also has rows of other generations';

CREATE FUNCTION nearsim.leaf_of(parent text, generation_id integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN parent = 'signed' AND generation_id >= 100000000 THEN 'signed_document'
    WHEN parent = 'signed' THEN 'signature_shared'
    WHEN nearsim.is_shared(parent, generation_id) THEN parent || '_shared' ELSE parent || '_' || generation_id END;
COMMENT ON FUNCTION nearsim.leaf_of(text, integer) IS
    'Internal: the name in nearsim_index of the table, or of the function, of a generation; for the parent signed, the table of its signatures by head';

-- If the number is in a subquery, the planner expects as many rows as a generation has on average. If it is a constant, the
-- planner expects a single row as long as the table's statistics know only other generations; they are collected when a large
-- generation is built.
CREATE FUNCTION nearsim.rows_of(parent text, generation_id integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
RETURN format(CASE WHEN NOT nearsim.is_shared(parent, generation_id) THEN 'nearsim_index.%I'
        WHEN generation_id < 100000000 THEN '(SELECT * FROM nearsim_index.%I WHERE generation_id = (SELECT %s))'
        ELSE '(SELECT * FROM nearsim_index.%I WHERE generation_id = %s)' END,
    nearsim.leaf_of(parent, generation_id), generation_id);
COMMENT ON FUNCTION nearsim.rows_of(text, integer) IS
    'Internal: the rows of one generation, as the text of a FROM item that needs an alias';
