-- Reads work and changes through views that show only the rows that the caller may see.
CREATE FUNCTION nearsim.document_state(generation_id integer, doc_id bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    document_row record;
    signed record;
BEGIN
    SELECT coalesce(document.published_at, document.created_at)
            < now() - CAST(nullif(generation.recipe #>> '{retain,age}', 'none') AS interval) AS is_old,
        collection_id, external_id
        INTO document_row
    FROM nearsim.generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.document USING (collection_id)
    WHERE generation.generation_id = document_state.generation_id AND document.doc_id = document_state.doc_id;
    IF NOT FOUND OR NOT nearsim.may_see_generation(generation_id) THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT doc_id, head_id FROM %s AS own WHERE doc_id = $1', nearsim.rows_of('signature', generation_id))
        INTO signed USING doc_id;
    RETURN CASE
        WHEN EXISTS (
            SELECT FROM nearsim_index.queued_work AS work WHERE work.generation_id = document_state.generation_id
                AND work.stage IN ('sign', 'search', 'anchor')
                AND work.doc_id IN (document_state.doc_id, signed.head_id) AND work.set_aside_at IS NOT NULL)
            THEN 'was set aside'
        WHEN EXISTS (
            SELECT FROM nearsim_index.queued_work AS work WHERE work.generation_id = document_state.generation_id
                AND work.stage IN ('sign', 'search', 'anchor')
                AND work.doc_id IN (document_state.doc_id, signed.head_id) AND work.set_aside_at IS NULL)
            OR EXISTS (
                SELECT FROM nearsim_index.queued_work AS work
                WHERE work.generation_id = document_state.generation_id AND work.stage = 'compare')
            OR EXISTS (
                SELECT FROM nearsim_index.visible_changes AS change WHERE change.doc_id = document_state.doc_id OR change.collection_id IS NULL
                    OR change.collection_id = document_row.collection_id AND change.doc_id IS NULL
                        AND coalesce(change.external_id, document_row.external_id) = document_row.external_id)
            THEN 'waits to be indexed'
        WHEN signed.doc_id IS NULL AND document_row.is_old THEN 'is past the retention age of the index'
        WHEN signed.doc_id IS NULL THEN 'is not indexed'
        WHEN signed.head_id IS NULL THEN 'has no features'
    END;
END
$$;
COMMENT ON FUNCTION nearsim.document_state(integer, bigint) IS
    'Internal (used by why_not): why a document is not compared in a generation; NULL if it is compared, or if the caller may not read the generation';
