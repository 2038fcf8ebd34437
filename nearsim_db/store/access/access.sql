-- name: read_roles
-- The missing roles of nearsim, whether isolation is on, the owner of the documents, whether readers may read them, the
-- number of tables and views with another owner, whether the user has the owner's rights, and the user's roles. Reads only
-- the catalog.
WITH nearsim_role AS (SELECT unnest(ARRAY['nearsim_reader', 'nearsim_writer', 'nearsim_admin']) AS name)
SELECT ARRAY(SELECT name FROM nearsim_role WHERE to_regrole(name) IS NULL),
    relrowsecurity, pg_get_userbyid(relowner),
    coalesce(has_schema_privilege(to_regrole('nearsim_reader'), relnamespace, 'USAGE')
        AND has_table_privilege(to_regrole('nearsim_reader'), pg_class.oid, 'SELECT'), false),
    (SELECT count(*) FROM pg_class AS other
        WHERE other.relnamespace IN (pg_class.relnamespace, to_regnamespace('nearsim_index'))
            AND other.relkind IN ('r', 'p', 'v', 'S')
            AND other.relowner <> pg_class.relowner),
    pg_has_role(relowner, 'USAGE'),
    ARRAY(SELECT name FROM nearsim_role WHERE pg_has_role(to_regrole(name), 'USAGE'))
FROM pg_class
WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'nearsim') AND relname = 'document'

-- name: create_roles
-- Create missing roles if the user may do so, and grant the rights of the roles if this was not possible before.
SELECT nearsim.create_roles();
SELECT nearsim.grant_rights() FROM pg_catalog.pg_class
WHERE oid = to_regclass('nearsim.document') AND nearsim.roles_exist() AND pg_has_role(relowner, 'USAGE')
    AND (relowner <> to_regrole('nearsim_admin') AND nearsim.may_transfer_ownership('nearsim_admin')
        OR NOT has_table_privilege(to_regrole('nearsim_reader'), pg_class.oid, 'SELECT'))

-- name: withhold_statistics
-- Prevent ANALYZE from keeping values of users' data, if the user has the owner's rights. Reads only the catalog.
SELECT nearsim.withhold_all_statistics() FROM pg_catalog.pg_class
WHERE oid = to_regclass('nearsim.document') AND pg_has_role(relowner, 'USAGE')

-- name: list_shown_statistics
-- Columns and index expressions with users' data of which ANALYZE would keep or has kept values. Reads only the catalog.
SELECT concat_ws('.', CAST(oid AS regclass), shown.name)
FROM pg_catalog.pg_class CROSS JOIN LATERAL nearsim.shown_statistics(oid) AS shown
WHERE relnamespace IN (to_regnamespace('nearsim'), to_regnamespace('nearsim_index')) AND relkind IN ('r', 'p', 'i', 'I')
ORDER BY 1

-- name: find_user
-- Whether a role of the server is a direct member of another role; no row if the role does not exist. Reads only the
-- catalog.
SELECT pg_roles.oid = granted.oid OR EXISTS (
    SELECT FROM pg_catalog.pg_auth_members WHERE member = pg_roles.oid AND roleid = granted.oid)
FROM pg_catalog.pg_roles CROSS JOIN (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = %(role)s) AS granted
WHERE rolname = %(user)s

-- name: grant_role
-- Make a role a member of a nearsim role.
GRANT {role} TO {user}

-- name: find_grantors
-- The roles that granted a membership; from PostgreSQL 16 on, each grant is revoked separately. Reads only the catalog.
SELECT grantor.rolname
FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles AS granted ON granted.oid = roleid
JOIN pg_catalog.pg_roles AS member_role ON member_role.oid = member
LEFT JOIN pg_catalog.pg_roles AS grantor ON grantor.oid = pg_auth_members.grantor
WHERE granted.rolname = %(role)s AND member_role.rolname = %(user)s

-- name: revoke_role
-- Revoke a membership in a role of nearsim.
REVOKE {role} FROM {user}

-- name: revoke_role_granted_by
-- Revoke a membership in a role of nearsim that one grantor granted (PostgreSQL 16 and later).
REVOKE {role} FROM {user} GRANTED BY {grantor}

-- name: count_roles_of
-- Number of roles of nearsim in which a role is a direct member. Reads only the catalog.
SELECT count(*)
FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles AS granted ON granted.oid = roleid
JOIN pg_catalog.pg_roles AS member_role ON member_role.oid = member
WHERE granted.rolname IN ('nearsim_reader', 'nearsim_writer', 'nearsim_admin') AND member_role.rolname = %(user)s

-- name: grant_collection
-- Let a role read a collection, or also write to it; this replaces an earlier grant. Relies on collection_access_pkey.
INSERT INTO nearsim_index.collection_access (collection_id, role_name, may_write)
VALUES (%(collection_id)s, %(user)s, %(may_write)s)
ON CONFLICT (collection_id, role_name) DO UPDATE SET may_write = excluded.may_write
WHERE collection_access.may_write <> excluded.may_write

-- name: list_rights_beyond
-- Rights of a user that go beyond a role of nearsim, on these collections or on any: the strongest role of the user, and
-- roles through which the user, as a member, may write to the collections. Relies on collection_access_pkey.
(SELECT 'is a ' || name FROM unnest(ARRAY['nearsim_reader', 'nearsim_writer', 'nearsim_admin']) WITH ORDINALITY AS held (name, rank)
WHERE rank > array_position(ARRAY['nearsim_reader', 'nearsim_writer', 'nearsim_admin'], %(role)s)
    AND pg_has_role(to_regrole(quote_ident(%(user)s)), to_regrole(name), 'MEMBER')
ORDER BY rank DESC LIMIT 1)
UNION ALL
SELECT format('may write %%s as a member of %%s', quote_literal(collection.name), role_name)
FROM nearsim_index.collection_access JOIN nearsim.collection USING (collection_id)
WHERE %(role)s = 'nearsim_reader' AND may_write AND role_name <> %(user)s
    AND (collection_id = ANY(CAST(%(collection_ids)s AS integer[])) OR cardinality(CAST(%(collection_ids)s AS integer[])) = 0)
    AND pg_has_role(to_regrole(quote_ident(%(user)s)), to_regrole(quote_ident(role_name)), 'MEMBER')

-- name: list_isolation_gaps
-- Readers and writers (or a single user) who can read or change other collections despite isolation, with a row for each
-- reason. Administrators of nearsim and superusers are left out. Reads only the catalog.
SELECT member.rolname, gap.reason
FROM pg_catalog.pg_roles AS member CROSS JOIN LATERAL (
    SELECT 'has BYPASSRLS and sees all collections' WHERE member.rolbypassrls
    UNION ALL
    SELECT 'has REPLICATION and may copy the whole server' WHERE member.rolreplication
    UNION ALL
    SELECT 'has CREATEROLE and may make itself a member of nearsim_admin'
    WHERE member.rolcreaterole AND CAST(current_setting('server_version_num') AS integer) < 160000
    UNION ALL
    SELECT format('may %%s as a member of %%s: %%s', deed, name, way) FROM (VALUES
        ('pg_read_all_data', 'read texts of all collections', 'tables of pg_toast and pg_statistic have no policies'),
        ('pg_read_all_stats', 'read texts of all collections', 'queries of other sessions contain them'),
        ('pg_read_server_files', 'read texts of all collections', 'files of the server contain them'),
        ('pg_write_server_files', 'read texts of all collections', 'it may change files of the server'),
        ('pg_execute_server_program', 'read texts of all collections', 'it may run programs on the server'),
        ('pg_write_all_data', 'keep all collections from being written', 'sequences of ids have no policies'),
        ('pg_maintain', 'keep all collections from being read', 'it may lock and rewrite every table'),
        ('pg_signal_backend', 'stop work on all collections', 'it may end the sessions of others')
    ) AS role (name, deed, way)
    WHERE pg_has_role(member.oid, to_regrole(name), 'MEMBER')
) AS gap (reason)
WHERE (member.rolname = %(user)s OR CAST(%(user)s AS text) IS NULL
        AND (pg_has_role(member.oid, to_regrole('nearsim_reader'), 'MEMBER')
            OR pg_has_role(member.oid, to_regrole('nearsim_writer'), 'MEMBER'))
        AND NOT pg_has_role(member.oid, to_regrole('nearsim_admin'), 'MEMBER'))
    AND member.rolname NOT LIKE 'nearsim\_%%' AND NOT member.rolsuper
ORDER BY 1, 2

-- name: forbid_writing
-- Reduce all grants of a role on collections to reading. Relies on collection_access_pkey.
UPDATE nearsim_index.collection_access SET may_write = false WHERE role_name = %(user)s AND may_write

-- name: revoke_collections
-- Delete a role's grants on these collections, or on all. Relies on collection_access_pkey.
DELETE FROM nearsim_index.collection_access
WHERE role_name = %(user)s AND (collection_id = ANY(CAST(%(collection_ids)s AS integer[])) OR %(collection_ids)s IS NULL)

-- name: list_access
-- Grants on collections. A role may have been dropped after the grant. Reads the whole table.
SELECT collection.name, access.role_name, access.may_write
FROM nearsim_index.collection_access AS access JOIN nearsim.collection USING (collection_id)
ORDER BY collection.name, access.role_name

-- name: list_role_members
-- Users and groups that are direct members of roles of nearsim, with a row for each role. Reads only the catalog.
SELECT member_role.rolname, granted.rolname
FROM pg_catalog.pg_auth_members
JOIN pg_catalog.pg_roles AS granted ON granted.oid = roleid
JOIN pg_catalog.pg_roles AS member_role ON member_role.oid = member
WHERE granted.rolname IN ('nearsim_reader', 'nearsim_writer', 'nearsim_admin')
    AND member_role.rolname NOT IN ('nearsim_reader', 'nearsim_writer', 'nearsim_admin')
GROUP BY member_role.rolname, granted.rolname
ORDER BY member_role.rolname, granted.rolname

-- name: list_roles_without_collections
-- Readers and writers that may read no collection under isolation, neither by a grant to them nor through a role of which
-- they are members. A user without the owner's rights sees only itself. Reads the catalog and collection_access, which are
-- small.
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
        SELECT FROM nearsim_index.collection_access AS access
        JOIN pg_catalog.pg_roles AS granted ON granted.rolname = access.role_name
        WHERE pg_has_role(role.oid, granted.oid, 'USAGE'))
ORDER BY role.rolname
