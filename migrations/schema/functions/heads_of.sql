-- The first two run with the rights of their owner, so that the leaves can be read by name. They rely on the leaves' keys:
-- one descent for each document, and at most one for two heads.
CREATE FUNCTION nearsim.heads_of(generation_id integer, doc_ids bigint[]) RETURNS TABLE (doc_id bigint, head_id bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
BEGIN
    IF nearsim.may_read_generation(generation_id) THEN
        RETURN QUERY EXECUTE format(
            'SELECT doc_id, head_id FROM nearsim_index.%I WHERE doc_id = ANY ($1)', 'signature_' || generation_id)
            USING doc_ids;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.heads_of(integer, bigint[]) IS
    'Part of dedupe: those of some documents that a generation that the caller may read has, and their heads';
