-- The view has the rows that current_user may see. An UPDATE of the view runs its trigger, which reads the texts of these rows
-- with the owner's rights and writes nothing. PostgreSQL refuses the UPDATE in a read-only transaction; there the caller needs
-- rights on the attached table.
CREATE FUNCTION nearsim.attached_bodies(doc_ids bigint[]) RETURNS TABLE (doc_id bigint, body text)
LANGUAGE plpgsql VOLATILE STRICT ROWS 1000 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('nearsim.asked_documents', CAST(doc_ids AS text), true);
    IF CAST(current_setting('transaction_read_only') AS boolean) THEN
        RETURN QUERY
            SELECT read.doc_id, read.body FROM nearsim_index.attached_texts AS asked
            LEFT JOIN nearsim_index.attachment USING (collection_id)
            CROSS JOIN LATERAL unnest(asked.doc_ids, nearsim.source_texts(attachment, asked.external_ids)) AS read (doc_id, body);
    ELSE
        RETURN QUERY
            WITH read AS (UPDATE nearsim_index.attached_texts AS asked SET bodies = NULL RETURNING asked.doc_ids, asked.bodies)
            SELECT unnest(read.doc_ids), unnest(read.bodies) FROM read;
    END IF;
    PERFORM set_config('nearsim.asked_documents', '', true);
END
$$;
COMMENT ON FUNCTION nearsim.attached_bodies(bigint[]) IS
    'Internal (used by body_of and bodies_of): the texts of documents that are in attached tables';
