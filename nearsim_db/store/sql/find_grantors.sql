-- Who granted a role to another; from 16 on each of them has to take it back for itself.
SELECT grantor.rolname
FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles AS granted ON granted.oid = roleid
JOIN pg_catalog.pg_roles AS given_to ON given_to.oid = member
LEFT JOIN pg_catalog.pg_roles AS grantor ON grantor.oid = pg_auth_members.grantor
WHERE granted.rolname = %(role)s AND given_to.rolname = %(user)s
