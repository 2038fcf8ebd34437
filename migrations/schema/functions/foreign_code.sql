-- PostgreSQL calls functions in expressions of indexes, statistics, partition keys and CHECK constraints while it plans a
-- query on a table, with the rights of the role that runs the query. A role that may act as that one gains nothing by it.
CREATE FUNCTION nearsim.foreign_code(relation regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH RECURSIVE family (oid) AS (
        SELECT CAST(foreign_code.relation AS oid)
        UNION
        SELECT inhrelid FROM pg_inherits JOIN family ON inhparent = family.oid
    ), object (classid, objid) AS (
        SELECT CAST('pg_class' AS regclass), oid FROM family
        UNION ALL
        SELECT CAST('pg_class' AS regclass), indexrelid FROM pg_index JOIN family ON indrelid = family.oid
        UNION ALL
        SELECT CAST('pg_statistic_ext' AS regclass), pg_statistic_ext.oid
        FROM pg_statistic_ext JOIN family ON stxrelid = family.oid
        UNION ALL
        SELECT CAST('pg_constraint' AS regclass), pg_constraint.oid
        FROM pg_constraint JOIN family ON conrelid = family.oid
    )
    SELECT format('%s calls %s of %s', pg_describe_object(classid, objid, 0), CAST(pg_proc.oid AS regprocedure),
        pg_get_userbyid(proowner))
    FROM object JOIN pg_depend USING (classid, objid)
    LEFT JOIN pg_operator ON refclassid = CAST('pg_operator' AS regclass) AND pg_operator.oid = refobjid
    JOIN pg_proc ON pg_proc.oid = CASE refclassid WHEN CAST('pg_proc' AS regclass) THEN refobjid ELSE oprcode END
    WHERE NOT pg_has_role(proowner, current_user, 'MEMBER')
    UNION ALL
    SELECT format('the foreign table %s of %s is a part of it', CAST(pg_class.oid AS regclass), pg_get_userbyid(relowner))
    FROM family JOIN pg_class USING (oid)
    WHERE relkind = 'f' AND NOT pg_has_role(relowner, current_user, 'MEMBER')
    LIMIT 1;
END;
COMMENT ON FUNCTION nearsim.foreign_code(regclass) IS
    'Internal (used by attach): what another role could run by a table, with the rights of current_user, when it is read; NULL if nothing';
