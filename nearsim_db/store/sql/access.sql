-- name: read_roles
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

-- name: create_roles
-- The roles are made as far as they are missing and the user may; then rights are put right if they could not be before.
SELECT nearsim.create_roles();
SELECT nearsim.grant_rights() FROM pg_catalog.pg_class
WHERE oid = to_regclass('nearsim.document') AND nearsim.have_roles() AND pg_has_role(relowner, 'USAGE')
    AND (relowner <> to_regrole('nearsim_admin') AND nearsim.may_hand_over('nearsim_admin')
        OR NOT has_table_privilege(to_regrole('nearsim_reader'), pg_class.oid, 'SELECT'))

-- name: find_user
-- A role of the server by name, and whether it is granted another one directly.
SELECT pg_roles.oid = granted.oid OR EXISTS (
    SELECT FROM pg_catalog.pg_auth_members WHERE member = pg_roles.oid AND roleid = granted.oid)
FROM pg_catalog.pg_roles CROSS JOIN (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = %(role)s) AS granted
WHERE rolname = %(user)s

-- name: grant_role
-- A role becomes a member of one of ours.
GRANT {role} TO {user}

-- name: find_grantors
-- Who granted a role to another; from 16 on each of them has to take it back for itself.
SELECT grantor.rolname
FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles AS granted ON granted.oid = roleid
JOIN pg_catalog.pg_roles AS given_to ON given_to.oid = member
LEFT JOIN pg_catalog.pg_roles AS grantor ON grantor.oid = pg_auth_members.grantor
WHERE granted.rolname = %(role)s AND given_to.rolname = %(user)s

-- name: revoke_role
-- A role is a member of one of ours no longer.
REVOKE {role} FROM {user}

-- name: revoke_role_by
-- A role is a member of one of ours no longer, as far as this grantor made it one.
REVOKE {role} FROM {user} GRANTED BY {grantor}

-- name: count_roles_of
-- How many of our roles a role is a direct member of.
SELECT count(*)
FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles AS granted ON granted.oid = roleid
JOIN pg_catalog.pg_roles AS given_to ON given_to.oid = member
WHERE granted.rolname IN ('nearsim_reader', 'nearsim_writer', 'nearsim_admin') AND given_to.rolname = %(user)s

-- name: grant_collection
-- A role may read a collection, or write it too; what it was granted before it keeps. Relies on collection_access_pkey.
INSERT INTO nearsim.collection_access AS held (collection_id, role_name, may_write)
VALUES (%(collection_id)s, %(user)s, %(may_write)s)
ON CONFLICT (collection_id, role_name) DO UPDATE SET may_write = held.may_write OR excluded.may_write

-- name: revoke_collections
-- What a role was granted of some collections, or of all, is gone. Relies on collection_access_pkey.
DELETE FROM nearsim.collection_access
WHERE role_name = %(user)s AND (collection_id = ANY(CAST(%(collection_ids)s AS integer[])) OR %(collection_ids)s IS NULL)

-- name: list_access
-- Which roles were granted which lasting collections; roles may be gone by now.
SELECT collection.name, access.role_name, access.may_write
FROM nearsim.collection_access AS access JOIN nearsim.collection USING (collection_id)
WHERE NOT collection.temporary
ORDER BY collection.name, access.role_name

-- name: list_openings
-- Rights on what isolation hides that other roles were granted by hand: (role, table), PUBLIC without a name.
SELECT coalesce(rolname, 'PUBLIC'), relname
FROM pg_catalog.pg_class
CROSS JOIN LATERAL (
    SELECT privilege.grantee FROM pg_catalog.aclexplode(relacl) AS privilege
    UNION
    SELECT privilege.grantee FROM pg_catalog.pg_attribute
    CROSS JOIN LATERAL pg_catalog.aclexplode(attacl) AS privilege
    WHERE attrelid = pg_class.oid
) AS given
LEFT JOIN pg_catalog.pg_roles ON pg_roles.oid = grantee
WHERE relnamespace = CAST('nearsim' AS pg_catalog.regnamespace) AND relkind IN ('r', 'p')
    AND relname <> 'alembic_version'
    AND (NOT EXISTS (SELECT FROM pg_catalog.pg_policy WHERE polrelid = pg_class.oid) OR relname = 'signature')
    AND grantee <> relowner AND coalesce(rolname, '') NOT IN ('nearsim_reader', 'nearsim_writer', 'nearsim_admin')
ORDER BY 1, 2

-- name: list_ungranted
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
