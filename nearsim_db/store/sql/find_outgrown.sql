-- Whether the partitions of a parent, as they were analyzed last, have twice the rows that it had then. Where the user may
-- not analyze it, nothing is to be done.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class AS parent
    JOIN pg_catalog.pg_inherits ON inhparent = parent.oid
    JOIN pg_catalog.pg_class AS leaf ON leaf.oid = inhrelid
    WHERE parent.relnamespace = pg_catalog.to_regnamespace('nearsim')
        AND parent.relname IN ('signature', 'similar_pair', 'cluster_member')
        AND pg_catalog.pg_has_role(parent.relowner, 'USAGE')
    GROUP BY parent.oid
    HAVING sum(greatest(leaf.reltuples, 0)) > 2 * greatest(parent.reltuples, 0))
