-- Reads a partition by name, as pairs_between does. Relies on the partitions' keys, with one index search for each document.
CREATE FUNCTION nearsim.heads_of(generation_id integer, doc_ids bigint[]) RETURNS TABLE (doc_id bigint, head_id bigint)
LANGUAGE plpgsql STABLE ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
BEGIN
    IF nearsim.may_see_generation(generation_id) THEN
        RETURN QUERY EXECUTE format(
            'SELECT doc_id, head_id FROM %s AS own WHERE doc_id = ANY ($1)', nearsim.rows_of('signature', generation_id))
            USING doc_ids;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.heads_of(integer, bigint[]) IS
    'Internal (used by dedupe): the heads of those documents that are indexed in a generation; no rows if the caller may not read the generation';
