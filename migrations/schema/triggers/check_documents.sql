-- Writers may insert rows into these tables without calling nearsim's functions. The trigger runs as the writer; for it,
-- documents that row-level security hides do not exist.
CREATE FUNCTION nearsim.check_documents() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unknown bigint;
BEGIN
    IF TG_RELID = CAST('nearsim.survivor_pin' AS regclass) THEN
        SELECT added.doc_id INTO unknown FROM added
        LEFT JOIN nearsim.document USING (collection_id, doc_id)
        WHERE document.doc_id IS NULL LIMIT 1;
    ELSE
        SELECT ends.doc_id INTO unknown FROM added
        CROSS JOIN LATERAL (VALUES (left_id), (right_id)) AS ends (doc_id)
        LEFT JOIN nearsim.document ON document.collection_id = added.collection_id AND document.doc_id = ends.doc_id
        WHERE document.doc_id IS NULL LIMIT 1;
    END IF;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no document % in this collection', unknown USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.check_documents() IS
    'Trigger on verdict, survivor_pin and review: raises an error for rows about documents that are not in the row''s collection';

CREATE TRIGGER verdict_check_documents AFTER INSERT ON nearsim.verdict
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION nearsim.check_documents();
CREATE TRIGGER survivor_pin_check_documents AFTER INSERT ON nearsim.survivor_pin
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION nearsim.check_documents();
CREATE TRIGGER review_check_documents AFTER INSERT ON nearsim.review
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION nearsim.check_documents();
