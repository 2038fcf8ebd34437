-- The columns of a table: the type that each is at bottom, its collation, whether it is computed when it is read, whether no
-- two rows have the same in it, and whether the user, and the owner of our functions, may read it.
WITH RECURSIVE kind AS (
    SELECT attnum, atttypid AS type FROM pg_catalog.pg_attribute
    WHERE attrelid = CAST(%(relation)s AS oid) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, typbasetype FROM kind JOIN pg_catalog.pg_type ON oid = type WHERE typbasetype <> 0
)
SELECT attname, format_type(type, NULL), collation_in.nspname, collname, CAST(attgenerated AS text) = 'v',
    EXISTS (
        SELECT FROM pg_catalog.pg_index
        WHERE indrelid = attrelid AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL
            AND indnkeyatts = 1 AND indkey[0] = attnum),
    has_column_privilege(attrelid, attname, 'SELECT'),
    has_column_privilege(pg_get_userbyid(ours.relowner), attrelid, attname, 'SELECT'), quote_ident(pg_get_userbyid(ours.relowner))
FROM pg_catalog.pg_attribute JOIN kind USING (attnum) JOIN pg_catalog.pg_type ON pg_type.oid = type AND typbasetype = 0
LEFT JOIN pg_catalog.pg_collation ON pg_collation.oid = attcollation
LEFT JOIN pg_catalog.pg_namespace AS collation_in ON collation_in.oid = collnamespace
JOIN pg_catalog.pg_class AS ours ON ours.oid = CAST('nearsim.document' AS regclass)
WHERE attrelid = CAST(%(relation)s AS oid) AND NOT attisdropped
