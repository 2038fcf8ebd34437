-- A role of the server by name, and whether it is granted another one directly.
SELECT pg_roles.oid = granted.oid OR EXISTS (
    SELECT FROM pg_catalog.pg_auth_members WHERE member = pg_roles.oid AND roleid = granted.oid)
FROM pg_catalog.pg_roles CROSS JOIN (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = %(role)s) AS granted
WHERE rolname = %(user)s
