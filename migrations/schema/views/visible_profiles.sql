-- Runs with its owner's rights, as granted_generations does, and checks the grants once, instead of in the policies of two
-- tables. Relies on profile_name_key and generation_one_live.
CREATE VIEW nearsim_index.visible_profiles WITH (security_barrier = true) AS
SELECT profile.collection_id, profile.name AS profile, live.generation_id, live.bands, live.rows, live.recipe
FROM nearsim.profile
LEFT JOIN nearsim.generation AS live ON live.profile_id = profile.profile_id AND live.state = 'live'
WHERE (SELECT NOT row_security_active(CAST('nearsim.document' AS regclass)))
    OR profile.collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access
        WHERE pg_has_role(to_regrole(quote_ident(access.role_name)), 'USAGE')));

COMMENT ON VIEW nearsim_index.visible_profiles IS
    'Internal (used by live_generation): the profiles that current_user may see, each with its live generation';
COMMENT ON COLUMN nearsim_index.visible_profiles.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim_index.visible_profiles.generation_id IS 'The live generation of the profile; NULL if there is none';
COMMENT ON COLUMN nearsim_index.visible_profiles.bands IS 'Number of bands of a sketch in the live generation';
COMMENT ON COLUMN nearsim_index.visible_profiles.rows IS 'Number of sketch positions per band in the live generation';
COMMENT ON COLUMN nearsim_index.visible_profiles.recipe IS 'The complete recipe of the live generation, including defaults';
