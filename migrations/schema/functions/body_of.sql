CREATE FUNCTION nearsim.body_of(doc_id bigint) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored record;
BEGIN
    SELECT document.body, document.body_digest INTO stored
    FROM nearsim.document WHERE document.doc_id = body_of.doc_id;
    IF stored.body_digest IS NULL THEN
        RETURN stored.body;
    END IF;
    RETURN nearsim.attached_text(doc_id);
END
$$;
COMMENT ON FUNCTION nearsim.body_of(bigint) IS 'The text of a document, from nearsim.document or the attached table';
