-- How many of our roles a role is a direct member of.
SELECT count(*)
FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles AS granted ON granted.oid = roleid
JOIN pg_catalog.pg_roles AS given_to ON given_to.oid = member
WHERE granted.rolname IN ('nearsim_reader', 'nearsim_writer', 'nearsim_admin') AND given_to.rolname = %(user)s
