-- Runs with its owner's rights, because callers may not read attached tables otherwise. So it reads only tables, not
-- computed views, and only columns of built-in types, for which no user-defined cast or operator is found.
CREATE FUNCTION nearsim.body_of(doc_id bigint) RETURNS text
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    numbers constant regtype[] := '{smallint,integer,bigint}';
    texts constant regtype[] := '{text,varchar}';
    stored record;
    key_there text;
    text_there text;
BEGIN
    SELECT document.external_id, document.body, document.body_digest, attachment.relation, id_column, text_column
    INTO stored
    FROM nearsim.document
    LEFT JOIN nearsim.attachment USING (collection_id)
    WHERE document.doc_id = body_of.doc_id AND nearsim.may_read_collection(document.collection_id);
    IF stored.body_digest IS NULL THEN
        RETURN stored.body;
    END IF;
    WITH RECURSIVE kind AS (
        SELECT attname, attcollation, atttypid AS type
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE pg_class.oid = stored.relation AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
            AND attname IN (stored.id_column, stored.text_column)
        UNION ALL
        SELECT attname, attcollation, typbasetype FROM kind JOIN pg_type ON pg_type.oid = type WHERE typbasetype <> 0
    )
    SELECT CASE
        WHEN id.type = ANY(numbers) THEN 'nearsim.as_bigint($1)'
        WHEN id.type = CAST('uuid' AS regtype) THEN 'nearsim.as_uuid($1)'
        WHEN id.type = ANY(texts) THEN format('$1 COLLATE %I.%I', nspname, collname)
        END
    INTO key_there
    FROM kind AS id
    JOIN kind AS body ON body.attname = stored.text_column AND body.type = ANY(texts)
    LEFT JOIN pg_collation ON pg_collation.oid = id.attcollation
    LEFT JOIN pg_namespace ON pg_namespace.oid = collnamespace
    WHERE id.attname = stored.id_column
    ORDER BY 1 LIMIT 1;
    IF key_there IS NULL THEN
        RAISE WARNING 'the text of document % cannot be read: its collection has no attached table with readable columns', doc_id
            USING HINT = 'For the reason run: nearsim attach --list';
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT source.%I FROM %s AS source WHERE source.%I = %s', stored.text_column, stored.relation,
            stored.id_column, key_there)
    INTO text_there USING stored.external_id;
    RETURN text_there;
EXCEPTION WHEN insufficient_privilege OR undefined_table OR undefined_column OR syntax_error THEN
    RAISE WARNING 'the text of document % cannot be read: %', doc_id, SQLERRM;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.body_of(bigint) IS 'The text of a document, from nearsim.document or the attached table';
