-- The view has the rows that current_user may see; its trigger reads their texts with the owner's rights, and nothing is
-- written. A read-only transaction refuses that; there the caller needs rights on the table itself.
CREATE FUNCTION nearsim.attached_text(doc_id bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found text;
BEGIN
    IF CAST(current_setting('transaction_read_only') AS boolean) THEN
        SELECT nearsim.source_text(attachment, external_id) INTO found
        FROM nearsim.document LEFT JOIN nearsim_index.attachment USING (collection_id)
        WHERE document.doc_id = attached_text.doc_id;
        RETURN found;
    END IF;
    UPDATE nearsim_index.attached_texts AS asked SET body = NULL
    WHERE asked.doc_id = attached_text.doc_id RETURNING asked.body INTO found;
    RETURN found;
END
$$;
COMMENT ON FUNCTION nearsim.attached_text(bigint) IS
    'Internal (used by body_of): the text of a document that is in an attached table';
