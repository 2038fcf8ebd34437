-- Cheaper than document_state, which reads all changes. The queue is read only if the answer is empty, because reading it
-- takes longer than everything else here. Relies on document_pkey, work_pkey and the keys of signature_N.
CREATE FUNCTION nearsim.report_unindexed(generation_id integer, doc_id bigint, is_empty boolean) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    signed_revision bigint;
    is_current boolean;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT revision FROM %s AS own WHERE doc_id = $1', nearsim.rows_of('signature', generation_id))
        INTO signed_revision USING doc_id;
    SELECT document.revision IS NOT DISTINCT FROM signed_revision INTO is_current
    FROM nearsim.document WHERE document.doc_id = report_unindexed.doc_id;
    IF is_current AND is_empty THEN
        is_current := NOT EXISTS (
            SELECT FROM nearsim_index.queued_work AS work
            WHERE work.generation_id = report_unindexed.generation_id AND work.stage IN ('sign', 'search')
                AND work.doc_id = report_unindexed.doc_id);
    END IF;
    IF NOT is_current THEN
        RAISE NOTICE 'the present text of document % is not indexed; nearsim.documents shows its state', doc_id;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.report_unindexed(integer, bigint, boolean) IS
    'Internal (used by similar_to and similar_by_profiles): raises a notice if the present text of a document is not indexed in a generation, or if the answer is empty because pairs of the document were not searched yet';
