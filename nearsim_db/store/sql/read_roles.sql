-- How roles and rights stand: roles that are missing, whether collections are kept apart, who owns the documents,
-- whether readers may read them, tables that belong to somebody else, and what the user is.
WITH ours AS (SELECT unnest(ARRAY['nearsim_reader', 'nearsim_writer', 'nearsim_admin']) AS name)
SELECT ARRAY(SELECT name FROM ours WHERE to_regrole(name) IS NULL),
    relrowsecurity, pg_get_userbyid(relowner),
    coalesce(has_schema_privilege(to_regrole('nearsim_reader'), relnamespace, 'USAGE')
        AND has_table_privilege(to_regrole('nearsim_reader'), pg_class.oid, 'SELECT'), false),
    (SELECT count(*) FROM pg_class AS other
        WHERE other.relnamespace = pg_class.relnamespace AND other.relkind IN ('r', 'p', 'v', 'S')
            AND other.relowner <> pg_class.relowner),
    pg_has_role(relowner, 'USAGE'),
    ARRAY(SELECT name FROM ours WHERE pg_has_role(to_regrole(name), 'USAGE'))
FROM pg_class
WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'nearsim') AND relname = 'document'
