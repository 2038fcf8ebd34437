-- The table is checked once for all texts. The function reads only tables, never views, and only columns of built-in types,
-- for which PostgreSQL finds no user-defined cast or operator. Functions in an expression were checked when the table was
-- attached. If row-level security applies to the table, an error is raised, so no code of a policy runs. PREPARE locks the
-- definition of the table without planning anything. From then on the definition is read in its current state, even if the
-- transaction's snapshot of the catalog is older; this does not hold for the queries in foreign_code.
CREATE FUNCTION nearsim.source_texts(attached nearsim_index.attachment, external_ids text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    numbers constant regtype[] := '{smallint,integer,bigint}';
    texts constant regtype[] := '{text,varchar}';
    own_types constant oid := 16384;
    is_computed constant boolean := coalesce(attached.computed ? 'text', false);
    columns_read constant text[] := ARRAY(
        SELECT attached.id_column UNION ALL SELECT attached.text_column WHERE NOT is_computed UNION ALL
        SELECT jsonb_array_elements_text(value) FROM jsonb_each(attached.computed) WHERE key IN ('text', 'where'));
    types oid[];
    key_there text;
    texts_there text[];
    described constant text := format(CASE cardinality(external_ids) WHEN 1 THEN 'the text of document %L'
        ELSE 'the texts of document %L and %s others' END, external_ids[1], cardinality(external_ids) - 1);
BEGIN
    IF EXISTS (SELECT FROM pg_class WHERE oid = attached.relation AND relkind IN ('r', 'p')) THEN
        EXECUTE format('PREPARE nearsim_source AS SELECT FROM %s', attached.relation);
        DEALLOCATE nearsim_source;
        IF num_nonnulls(pg_relation_filenode(attached.relation), pg_get_partkeydef(attached.relation)) > 0
            AND nearsim.foreign_code(attached.relation) IS NULL
        THEN
            EXECUTE format('SELECT CAST(ARRAY[%s] AS oid[]) FROM (SELECT (CAST(NULL AS %s)).*) AS attached',
                (SELECT string_agg(format('pg_typeof(%I)', name), ', ' ORDER BY place)
                FROM unnest(columns_read) WITH ORDINALITY AS listed (name, place)), attached.relation) INTO types;
        END IF;
    END IF;
    WITH RECURSIVE kind AS (
        SELECT place, type FROM unnest(types) WITH ORDINALITY AS declared (type, place)
        UNION ALL
        SELECT place, typbasetype FROM kind JOIN pg_type ON pg_type.oid = type WHERE typbasetype <> 0 AND place <= 2
    )
    SELECT CASE
        WHEN id.type = ANY(numbers) THEN 'nearsim.as_bigint(asked.external_id)'
        WHEN id.type = CAST('uuid' AS regtype) THEN 'nearsim.as_uuid(asked.external_id)'
        WHEN id.type = ANY(texts) THEN format('asked.external_id COLLATE %I.%I', nspname, collname)
        END
    INTO key_there
    FROM kind AS id
    LEFT JOIN pg_attribute ON attrelid = attached.relation AND attname = attached.id_column AND NOT attisdropped
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    LEFT JOIN pg_namespace ON pg_namespace.oid = collnamespace
    WHERE id.place = 1
        AND (is_computed OR EXISTS (SELECT FROM kind WHERE place = 2 AND type = ANY(texts)))
        AND NOT EXISTS (SELECT FROM kind WHERE place > CASE WHEN is_computed THEN 1 ELSE 2 END AND type >= own_types)
    ORDER BY 1 LIMIT 1;
    IF key_there IS NULL THEN
        RAISE WARNING '% cannot be read: its collection has no attached table with readable columns', described
            USING HINT = 'For the reason run: nearsim table list';
        RETURN array_fill(CAST(NULL AS text), ARRAY[cardinality(external_ids)]);
    END IF;
    -- There is a subquery for each id, so that its row is looked up by the key. No expression refers to the alias of the
    -- table.
    EXECUTE format('SELECT array_agg((SELECT %s FROM %s AS nearsim_source WHERE %I = %s AND %s LIMIT 1) ORDER BY place)
        FROM unnest($1) WITH ORDINALITY AS asked (external_id, place)',
        CASE WHEN is_computed THEN attached.text_column ELSE quote_ident(attached.text_column) END, attached.relation,
        attached.id_column, key_there, coalesce('(' || attached.condition || ')', 'true'))
    INTO texts_there USING external_ids;
    RETURN texts_there;
EXCEPTION WHEN insufficient_privilege OR undefined_table OR undefined_column OR syntax_error THEN
    RAISE WARNING '% cannot be read: %', described, SQLERRM;
    RETURN array_fill(CAST(NULL AS text), ARRAY[cardinality(external_ids)]);
END
$$;
COMMENT ON FUNCTION nearsim.source_texts(nearsim_index.attachment, text[]) IS
    'Internal (used by attached_bodies): reads texts from an attached table with the rights of current_user, in the order of their ids; NULL, with a warning, for texts that cannot be read';
