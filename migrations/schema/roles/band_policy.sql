-- These policies have a separate file because schema init creates them again after a dump of a Citus cluster was restored.
CREATE POLICY granted ON nearsim.band FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim_index.band_shared FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
