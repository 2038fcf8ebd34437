-- Reads only tables, not computed views, and only columns of built-in types, for which no user-defined cast or operator is
-- found. The table's own row security is an error, not code that runs. PREPARE locks the definition of the table without
-- planning anything; what is read of it from then on is current, also in a transaction whose snapshot of the catalog is
-- older, but for foreign_code.
CREATE FUNCTION nearsim.source_text(relation regclass, id_column text, text_column text, external_id text) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    numbers constant regtype[] := '{smallint,integer,bigint}';
    texts constant regtype[] := '{text,varchar}';
    id_type regtype;
    text_type regtype;
    key_there text;
    text_there text;
BEGIN
    IF EXISTS (SELECT FROM pg_class WHERE oid = relation AND relkind IN ('r', 'p')) THEN
        EXECUTE format('PREPARE nearsim_source AS SELECT FROM %s', relation);
        DEALLOCATE nearsim_source;
        IF num_nonnulls(pg_relation_filenode(relation), pg_get_partkeydef(relation)) > 0
            AND nearsim.foreign_code(relation) IS NULL
        THEN
            EXECUTE format('SELECT pg_typeof(%I), pg_typeof(%I) FROM (SELECT (CAST(NULL AS %s)).*) AS attached',
                id_column, text_column, relation) INTO id_type, text_type;
        END IF;
    END IF;
    WITH RECURSIVE kind AS (
        SELECT true AS is_id, CAST(id_type AS oid) AS type
        UNION ALL
        SELECT false, CAST(text_type AS oid)
        UNION ALL
        SELECT is_id, typbasetype FROM kind JOIN pg_type ON pg_type.oid = type WHERE typbasetype <> 0
    )
    SELECT CASE
        WHEN id.type = ANY(numbers) THEN 'nearsim.as_bigint($1)'
        WHEN id.type = CAST('uuid' AS regtype) THEN 'nearsim.as_uuid($1)'
        WHEN id.type = ANY(texts) THEN format('$1 COLLATE %I.%I', nspname, collname)
        END
    INTO key_there
    FROM kind AS id
    JOIN kind AS body ON NOT body.is_id AND body.type = ANY(texts)
    LEFT JOIN pg_attribute ON attrelid = relation AND attname = id_column AND NOT attisdropped
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    LEFT JOIN pg_namespace ON pg_namespace.oid = collnamespace
    WHERE id.is_id
    ORDER BY 1 LIMIT 1;
    IF key_there IS NULL THEN
        RAISE WARNING 'the text of document % cannot be read: its collection has no attached table with readable columns',
            quote_literal(external_id) USING HINT = 'For the reason run: nearsim attach --list';
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT source.%I FROM %s AS source WHERE source.%I = %s', text_column, relation, id_column, key_there)
    INTO text_there USING external_id;
    RETURN text_there;
EXCEPTION WHEN insufficient_privilege OR undefined_table OR undefined_column OR syntax_error THEN
    RAISE WARNING 'the text of document % cannot be read: %', quote_literal(external_id), SQLERRM;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.source_text(regclass, text, text, text) IS
    'Internal (used by attached_text): a text in the attached table, read by its id with the rights of current_user';
