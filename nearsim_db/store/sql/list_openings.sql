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
