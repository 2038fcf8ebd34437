-- PostgreSQL evaluates ARRAY(...) and (SELECT function()) once in a query, and = ANY of either can be an index condition.
-- Tables that views read many times have a policy with the function, because its plan is cached, while a subquery is planned
-- every time. CAST distinguishes = ANY (array) from = ANY (subquery). Partitions get their policies from
-- grant_partition_rights.
CREATE POLICY own ON nearsim_index.collection_access FOR SELECT
    USING (pg_has_role(to_regrole(quote_ident(role_name)), 'USAGE'));
CREATE POLICY granted ON nearsim.collection FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY granted ON nearsim.document FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY granted_insert ON nearsim.document FOR INSERT
    WITH CHECK (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write)));
CREATE POLICY granted_update ON nearsim.document FOR UPDATE
    USING (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write)));
CREATE POLICY granted_delete ON nearsim.document FOR DELETE
    USING (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write)));
CREATE POLICY granted ON nearsim.profile FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY granted ON nearsim.generation FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim.signature FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim.similar_pair FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim.cluster_member FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim_index.signature_shared FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim_index.signed_document FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim_index.similar_pair_shared FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim_index.cluster_member_shared FOR SELECT
    USING (generation_id = ANY (CAST((SELECT nearsim.granted_generation_ids()) AS integer[])));
CREATE POLICY granted ON nearsim.verdict FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY granted ON nearsim.event FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY granted ON nearsim_index.attachment FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
-- A verdict names documents, so the policy also requires that the documents are in its collection.
CREATE POLICY granted_insert ON nearsim.verdict FOR INSERT
    WITH CHECK (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write))
        AND 2 = (SELECT count(*) FROM nearsim.document
            WHERE document.doc_id IN (left_id, right_id) AND document.collection_id = verdict.collection_id));
CREATE POLICY granted_update ON nearsim.verdict FOR UPDATE
    USING (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write)));
CREATE POLICY granted ON nearsim.survivor_pin FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY granted_insert ON nearsim.survivor_pin FOR INSERT
    WITH CHECK (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write))
        AND EXISTS (SELECT FROM nearsim.document
            WHERE document.doc_id = survivor_pin.doc_id AND document.collection_id = survivor_pin.collection_id));
CREATE POLICY granted_update ON nearsim.survivor_pin FOR UPDATE
    USING (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write)));
CREATE POLICY granted ON nearsim.review FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY granted_insert ON nearsim.review FOR INSERT
    WITH CHECK (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write))
        AND NOT EXISTS (SELECT FROM (VALUES (left_id), (right_id)) AS named (doc_id)
            LEFT JOIN nearsim.document ON document.doc_id = named.doc_id AND document.collection_id = review.collection_id
            WHERE document.doc_id IS NULL));
CREATE POLICY granted_update ON nearsim.review FOR UPDATE
    USING (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write)));
CREATE POLICY granted ON nearsim_index.checked_insertion FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY granted_insert ON nearsim_index.checked_insertion FOR INSERT
    WITH CHECK (collection_id = ANY (ARRAY(
        SELECT access.collection_id FROM nearsim_index.collection_access AS access WHERE access.may_write)));
-- A collection may be granted to several tenants. Each tenant sees only its own lookup requests.
CREATE POLICY own ON nearsim.probe FOR SELECT
    USING (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access))
        AND pg_has_role(to_regrole(quote_ident(asked_by)), 'USAGE'));
CREATE POLICY granted_insert ON nearsim.probe FOR INSERT
    WITH CHECK (collection_id = ANY (ARRAY(SELECT access.collection_id FROM nearsim_index.collection_access AS access)));
CREATE POLICY own ON nearsim.probe_match FOR SELECT
    USING (EXISTS (SELECT FROM nearsim.probe WHERE probe.probe_id = probe_match.probe_id));
-- The table has no data of tenants, so everybody may read it under isolation, too.
CREATE POLICY everybody ON nearsim_index.schema_floor FOR SELECT USING (true);

CREATE FUNCTION nearsim.set_isolation(wanted boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF wanted AND NOT nearsim.roles_exist() THEN
        RAISE EXCEPTION 'isolation needs the roles nearsim_reader, nearsim_writer and nearsim_admin, and some do not exist'
            USING ERRCODE = 'undefined_object', HINT = 'Create them with: nearsim access grant USER ROLE';
    END IF;
    EXECUTE format('ALTER TABLE nearsim.document %s ROW LEVEL SECURITY',
        CASE WHEN wanted THEN 'ENABLE' ELSE 'DISABLE' END);
    PERFORM nearsim.grant_rights();
END
$$;
COMMENT ON FUNCTION nearsim.set_isolation(boolean) IS
    'Internal (used by nearsim access isolation): turns isolation on or off; with isolation, readers and writers see only the collections that collection_access grants to them';
