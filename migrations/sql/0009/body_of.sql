-- Runs with the rights of its owner, as the texts of others' tables are not the caller's to read but for this.
CREATE OR REPLACE FUNCTION nearsim.body_of(doc_id bigint) RETURNS text
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    stored record;
    text_there text;
BEGIN
    SELECT document.external_id, document.body, document.body_digest, attachment.relation, id_column, text_column,
        id_type.typcategory AS kind, quote_ident(collation_of.nspname) || '.' || quote_ident(collname) AS id_collation
    INTO stored
    FROM nearsim.document
    LEFT JOIN nearsim.attachment USING (collection_id)
    LEFT JOIN pg_attribute ON attrelid = relation AND attname = id_column AND NOT attisdropped
    LEFT JOIN pg_type AS id_type ON id_type.oid = atttypid
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    LEFT JOIN pg_namespace AS collation_of ON collation_of.oid = collnamespace
    WHERE document.doc_id = body_of.doc_id AND nearsim.sees_collection(document.collection_id);
    IF stored.body_digest IS NULL THEN
        RETURN stored.body;
    END IF;
    EXECUTE format('SELECT source.%I FROM %s AS source WHERE source.%I = %s', stored.text_column, stored.relation,
            stored.id_column,
            CASE stored.kind WHEN 'N' THEN 'nearsim.as_bigint($1)' WHEN 'S' THEN '$1 COLLATE ' || stored.id_collation
                ELSE 'nearsim.as_uuid($1)' END)
    INTO text_there USING stored.external_id;
    RETURN text_there;
EXCEPTION WHEN insufficient_privilege OR undefined_table OR undefined_column OR syntax_error THEN
    RAISE WARNING 'the text of document % cannot be read: %', doc_id, SQLERRM;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.body_of(bigint) IS
    'The text of a document, wherever its collection keeps it';
