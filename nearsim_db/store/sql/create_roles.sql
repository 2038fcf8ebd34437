-- The roles are made as far as they are missing and the user may; then rights are put right if they could not be before.
SELECT nearsim.create_roles();
SELECT nearsim.grant_rights() FROM pg_catalog.pg_class
WHERE oid = to_regclass('nearsim.document') AND nearsim.have_roles() AND pg_has_role(relowner, 'USAGE')
    AND (relowner <> to_regrole('nearsim_admin') AND nearsim.may_hand_over('nearsim_admin')
        OR NOT has_table_privilege(to_regrole('nearsim_reader'), pg_class.oid, 'SELECT'))
