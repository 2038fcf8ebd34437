-- Runs with its owner's rights and has a condition on current_user. In a function that PostgreSQL runs as the owner of a
-- table, it therefore shows what that owner may see, not what the user of the command may see. Relies on the primary keys.
CREATE VIEW nearsim_index.granted_generations WITH (security_barrier = true) AS
SELECT generation.generation_id, access.collection_id
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim_index.collection_access AS access USING (collection_id)
WHERE pg_has_role(to_regrole(quote_ident(access.role_name)), 'USAGE');

COMMENT ON VIEW nearsim_index.granted_generations IS
    'Internal (used by the policies): the generations of the collections that were granted to current_user, once for each grant';
COMMENT ON COLUMN nearsim_index.granted_generations.collection_id IS 'Collection of the generation';
