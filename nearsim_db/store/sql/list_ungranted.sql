-- Readers and writers who see no collection where they are kept apart, neither by themselves nor by a role they are in;
-- whoever has not the owner's rights is told of itself only. There are few roles: nothing here needs an index.
SELECT role.rolname
FROM pg_catalog.pg_roles AS role
CROSS JOIN pg_catalog.pg_class
WHERE pg_class.oid = CAST('nearsim.document' AS pg_catalog.regclass) AND relrowsecurity
    AND (pg_has_role(relowner, 'USAGE') OR role.rolname = current_user)
    AND role.rolname NOT IN ('nearsim_reader', 'nearsim_writer', 'nearsim_admin')
    AND NOT role.rolsuper AND NOT role.rolbypassrls AND NOT pg_has_role(role.oid, relowner, 'USAGE')
    AND (pg_has_role(role.oid, to_regrole('nearsim_reader'), 'USAGE')
        OR pg_has_role(role.oid, to_regrole('nearsim_writer'), 'USAGE'))
    AND NOT EXISTS (
        SELECT FROM nearsim.collection_access AS access
        JOIN pg_catalog.pg_roles AS granted ON granted.rolname = access.role_name
        WHERE pg_has_role(role.oid, granted.oid, 'USAGE'))
ORDER BY role.rolname
