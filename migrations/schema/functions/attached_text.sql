-- The view has the rows that current_user may see; its trigger reads their texts with the owner's rights, and nothing is
-- written. A read-only transaction refuses that; there the caller needs rights on the table itself, and likewise on a
-- table of a role that does not have the owner's rights anyway: its owner could run code with the rights of who reads it.
CREATE FUNCTION nearsim.attached_text(doc_id bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attached record;
    found text;
BEGIN
    SELECT relation, id_column, text_column, external_id, pg_has_role(pg_class.relowner, pg_proc.proowner, 'MEMBER') AS is_trusted
    INTO attached
    FROM nearsim.document LEFT JOIN nearsim.attachment USING (collection_id)
    LEFT JOIN pg_class ON pg_class.oid = relation
    LEFT JOIN pg_proc ON pg_proc.oid = CAST('nearsim.read_attached_text()' AS regprocedure)
    WHERE document.doc_id = attached_text.doc_id;
    IF NOT attached.is_trusted OR CAST(current_setting('transaction_read_only') AS boolean) THEN
        RETURN nearsim.source_text(attached.relation, attached.id_column, attached.text_column, attached.external_id);
    END IF;
    UPDATE nearsim.attached_texts AS asked SET body = NULL
    WHERE asked.doc_id = attached_text.doc_id RETURNING asked.body INTO found;
    RETURN found;
END
$$;
COMMENT ON FUNCTION nearsim.attached_text(bigint) IS
    'Internal (used by body_of): the text of a document that is in an attached table';
