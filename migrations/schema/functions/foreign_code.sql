-- While PostgreSQL plans a query on a table, it calls the functions in expressions of indexes, statistics, partition keys and
-- CHECK constraints, with the rights of the role that runs the query. The owner of a table can add such an index at any
-- moment, and the owner of its schema can put another table in its place; no lock that a reader may hold prevents this.
-- Therefore both owners must be roles that may act as the role that runs the query, or as the owner of nearsim: such roles
-- gain nothing. The function is PL/pgSQL with a generic plan, because planning takes a hundred times as long as the query,
-- which runs for each text.
-- An UPDATE also calls the functions of triggers, rules and generated columns.
CREATE FUNCTION nearsim.foreign_code(relation regclass, for_update boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (
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
            UNION ALL
            SELECT CAST('pg_trigger' AS regclass), pg_trigger.oid
            FROM pg_trigger JOIN family ON tgrelid = family.oid WHERE for_update AND NOT tgisinternal
            UNION ALL
            SELECT CAST('pg_rewrite' AS regclass), pg_rewrite.oid
            FROM pg_rewrite JOIN family ON ev_class = family.oid WHERE for_update
            UNION ALL
            SELECT CAST('pg_attrdef' AS regclass), pg_attrdef.oid
            FROM pg_attrdef JOIN family ON adrelid = family.oid
            JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum AND attgenerated <> '' WHERE for_update
        ), owned (description, owner) AS (
            SELECT pg_describe_object(CAST('pg_class' AS regclass), oid, 0) || ' belongs to', relowner
            FROM family JOIN pg_class USING (oid)
            UNION ALL
            SELECT pg_describe_object(CAST('pg_namespace' AS regclass), pg_namespace.oid, 0) || ' belongs to', nspowner
            FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE pg_class.oid = CAST(foreign_code.relation AS oid)
            UNION ALL
            SELECT format('%s calls %s of', pg_describe_object(classid, objid, 0), CAST(pg_proc.oid AS regprocedure)),
                proowner
            FROM object JOIN pg_depend USING (classid, objid)
            LEFT JOIN pg_operator ON refclassid = CAST('pg_operator' AS regclass) AND pg_operator.oid = refobjid
            JOIN pg_proc ON pg_proc.oid = CASE refclassid WHEN CAST('pg_proc' AS regclass) THEN refobjid ELSE oprcode END
        )
        SELECT format('%s %s', description, pg_get_userbyid(actual.owner))
        FROM owned
        JOIN pg_database ON datname = current_database()
        JOIN pg_namespace ON nspname = 'nearsim'
        CROSS JOIN LATERAL (
            SELECT CASE owner WHEN to_regrole('pg_database_owner') THEN datdba ELSE owner END
        ) AS actual (owner)
        WHERE NOT pg_has_role(actual.owner, current_user, 'MEMBER') AND NOT pg_has_role(actual.owner, nspowner, 'MEMBER')
        LIMIT 1);
END
$$;
COMMENT ON FUNCTION nearsim.foreign_code(regclass, boolean) IS
    'Internal (used by attach): a description of the object through which an untrusted role could run code with the rights of current_user when a table is read, or with for_update when its rows are updated; NULL if there is none';
