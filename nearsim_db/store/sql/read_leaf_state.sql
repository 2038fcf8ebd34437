-- How one of a generation's own tables stands in the catalog: no row if it is missing; else whether it is logged, whether
-- it is a partition of its parent, the columns of its indexes, of those that cannot be used, and its foreign keys.
WITH own AS (
    SELECT indisvalid AND indisready AND indislive AS is_usable, (
        SELECT string_agg(attname, ', ' ORDER BY place) FROM unnest(CAST(indkey AS smallint[])) WITH ORDINALITY AS k (attnum, place)
        JOIN pg_catalog.pg_attribute ON attrelid = indrelid AND pg_attribute.attnum = k.attnum) AS columns
    FROM pg_catalog.pg_index WHERE indrelid = pg_catalog.to_regclass(%(leaf)s)
)
SELECT relpersistence = 'p',
    EXISTS (
        SELECT FROM pg_catalog.pg_inherits
        WHERE inhrelid = pg_class.oid AND inhparent = CAST(%(parent)s AS regclass) AND NOT inhdetachpending),
    ARRAY(SELECT columns FROM own WHERE is_usable), ARRAY(SELECT columns FROM own WHERE NOT is_usable),
    (SELECT count(*) FROM pg_catalog.pg_constraint WHERE conrelid = pg_class.oid AND contype = 'f' AND convalidated)
FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass(%(leaf)s)
