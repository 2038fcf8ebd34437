-- Runs with its owner's rights, as granted_generations does. Reads all captured changes.
CREATE VIEW nearsim_index.visible_changes WITH (security_barrier = true) AS
SELECT change.collection_id, change.doc_id, change.external_id, change.stage, change.changed_at
FROM nearsim.change
WHERE change.collection_id IS NULL
    OR (SELECT NOT row_security_active(CAST('nearsim.document' AS regclass)))
    OR change.collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access
        WHERE pg_has_role(to_regrole(quote_ident(access.role_name)), 'USAGE')));

COMMENT ON VIEW nearsim_index.visible_changes IS
    'Internal (used by backlog and why_not): captured writes that are not dispatched yet, of the collections that current_user may see';
