-- name: list_attachments
-- The attachment of one collection, or of all collections without a parent or with a recorded trouble (of all collections
-- with `of_values`). The name of the table is NULL if the table was dropped. Relies on attachment_pkey.
SELECT collection_id, collection.name, CAST(CAST(relation AS oid) AS bigint),
    (SELECT quote_ident(nspname) || '.' || quote_ident(relname)
    FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE pg_class.oid = relation),
    id_column, text_column, title_column, source_column, url_column, published_at_column, condition, computed,
    collection_field, given_condition, mark_column, parent_id, collection_value,
    coalesce((SELECT name FROM nearsim.collection AS parent WHERE parent.collection_id = parent_id), collection.name),
    attached_at, wanted_at, swept_at, sweep_seconds, unusable, detaching, trouble, troubled_at, marked_at, mark_trouble
FROM nearsim_index.attachment JOIN nearsim.collection USING (collection_id)
WHERE collection_id = %(collection_id)s OR %(collection_id)s IS NULL
    AND (parent_id IS NULL OR trouble IS NOT NULL OR %(of_values)s)
ORDER BY collection.name

-- name: count_lost_texts
-- Collections whose documents had their texts in an attached table, although no table is attached now, each with the number
-- of these documents; for one collection or for all. A collection has only such documents or none, so its first document
-- decides. Relies on document_collection_doc.
SELECT collection_id, name, (
    SELECT count(*) FROM nearsim.document WHERE document.collection_id = collection.collection_id AND body_digest IS NOT NULL)
FROM nearsim.collection
WHERE (collection_id = %(collection_id)s OR CAST(%(collection_id)s AS integer) IS NULL)
    AND NOT EXISTS (SELECT FROM nearsim_index.attachment WHERE attachment.collection_id = collection.collection_id)
    AND (SELECT body_digest IS NOT NULL FROM nearsim.document WHERE document.collection_id = collection.collection_id
        ORDER BY doc_id LIMIT 1)
ORDER BY name

-- name: store_attachment
-- Attach a table to a collection, or change the columns that are read from it. Relies on attachment_pkey.
INSERT INTO nearsim_index.attachment (collection_id, relation, id_column, text_column, title_column, source_column, url_column,
    published_at_column, condition, computed, collection_field, given_condition, mark_column, parent_id, collection_value)
VALUES (%(collection_id)s, CAST(%(relation)s AS oid), %(id)s, %(text)s, %(title)s, %(source)s, %(url)s, %(published_at)s,
    %(where)s, CAST(%(computed)s AS jsonb), %(collection_field)s, %(given_where)s, %(mark_column)s, %(parent_id)s, %(collection_value)s)
ON CONFLICT (collection_id) DO UPDATE SET
    id_column = excluded.id_column, text_column = excluded.text_column, title_column = excluded.title_column,
    source_column = excluded.source_column, url_column = excluded.url_column,
    published_at_column = excluded.published_at_column, condition = excluded.condition, computed = excluded.computed,
    collection_field = excluded.collection_field, given_condition = excluded.given_condition,
    mark_column = excluded.mark_column, marked_at = NULL, mark_trouble = NULL,
    wanted_at = clock_timestamp(), trouble = NULL, troubled_at = NULL

-- name: create_source_triggers
-- Create the triggers of an attached table. They are enabled ALWAYS, so that they also fire when replication applies
-- changes.
CREATE OR REPLACE TRIGGER {rows} AFTER INSERT OR UPDATE OR DELETE ON {relation}
    FOR EACH ROW EXECUTE FUNCTION nearsim.capture_source({arguments});
CREATE OR REPLACE TRIGGER {truncate} AFTER TRUNCATE ON {relation}
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.capture_source({arguments});
ALTER TABLE {relation} ENABLE ALWAYS TRIGGER {rows}, ENABLE ALWAYS TRIGGER {truncate}

-- name: drop_source_triggers
-- Drop nearsim's triggers from a table that was attached.
DROP TRIGGER IF EXISTS {rows} ON {relation};
DROP TRIGGER IF EXISTS {truncate} ON {relation}

-- name: set_detaching
-- Stop reading changes of an attached table, for its collection and for the collections of its values. Relies on
-- attachment_pkey.
UPDATE nearsim_index.attachment SET detaching = true
WHERE collection_id = %(collection_id)s OR parent_id = %(collection_id)s

-- name: list_of_values
-- The collections that belong to these values of the collection field, or to any value, sorted by value. Relies on
-- attachment_value_key.
SELECT collection_value, collection_id, name FROM nearsim_index.attachment JOIN nearsim.collection USING (collection_id)
WHERE parent_id = %(parent_id)s
    AND (collection_value = ANY(CAST(%(values)s AS text[])) OR CAST(%(values)s AS text[]) IS NULL)
ORDER BY collection_value

-- name: measure_texts
-- Number of a collection's documents, up to a limit, and total number of characters of their texts in an attached table.
-- Relies on document_collection_doc.
SELECT count(*), coalesce(sum(body_length), 0)
FROM (SELECT body_length FROM nearsim.document WHERE collection_id = %(collection_id)s LIMIT %(limit)s) AS document

-- name: delete_attached_documents
-- Delete documents whose texts are in an attached table. Relies on document_collection_doc.
DELETE FROM nearsim.document WHERE collection_id = %(collection_id)s AND body_digest IS NOT NULL

-- name: delete_attachment
-- Delete an attachment, and the changes of rows that were captured for it. Relies on attachment_pkey.
WITH deleted AS (
    DELETE FROM nearsim.change WHERE collection_id = %(collection_id)s AND doc_id IS NULL
)
DELETE FROM nearsim_index.attachment WHERE collection_id = %(collection_id)s

-- name: find_changed_sources
-- Collections for which changes of rows of attached tables were captured. Reads all of nearsim.change, which is short.
SELECT DISTINCT collection_id FROM nearsim.change WHERE doc_id IS NULL AND collection_id IS NOT NULL ORDER BY 1

-- name: take_source_changes
-- Take captured changes of rows of a collection's attached table; a NULL id means the whole table. Reads nearsim.change up
-- to the last change that is taken.
DELETE FROM nearsim.change WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM nearsim.change WHERE collection_id = %(collection_id)s AND doc_id IS NULL
    LIMIT %(batch)s FOR UPDATE SKIP LOCKED))
RETURNING external_id, collection_value

-- name: queue_text_checks
-- Queue documents whose texts are in an attached table, so that they are compared with that table. Relies on document_pkey.
INSERT INTO nearsim.change (collection_id, external_id, collection_value)
SELECT coalesce(parent_id, collection_id), external_id, collection_value
FROM nearsim.document JOIN nearsim_index.attachment USING (collection_id)
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND body_digest IS NOT NULL

-- name: invalidate_texts
-- Invalidate documents whose text in the attached table differs from the recorded digest: store a digest that no text has,
-- and queue a comparison, which then gives the document a new revision. Relies on document_pkey.
WITH invalidated AS (
    UPDATE nearsim.document SET body_digest = '00000000-0000-0000-0000-000000000000'
    WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id IS NOT DISTINCT FROM %(collection_id)s
        AND body_digest <> '00000000-0000-0000-0000-000000000000'
    RETURNING collection_id, external_id
)
INSERT INTO nearsim.change (collection_id, external_id, collection_value)
SELECT coalesce(parent_id, collection_id), external_id, collection_value
FROM invalidated JOIN nearsim_index.attachment USING (collection_id)

-- name: request_sweep
-- Request a sweep of the whole attached table, for all collections that have its rows. A sweep that began before the request
-- does not satisfy it. Relies on attachment_pkey and attachment_value_key.
UPDATE nearsim_index.attachment SET wanted_at = clock_timestamp()
WHERE collection_id = %(collection_id)s OR parent_id = %(collection_id)s

-- name: record_trouble
-- Record why and since when changes of a table are not indexed, and request a sweep for the changes that are missed. Relies
-- on attachment_pkey.
UPDATE nearsim_index.attachment SET trouble = %(trouble)s, troubled_at = coalesce(troubled_at, clock_timestamp()),
    wanted_at = clock_timestamp()
WHERE collection_id = %(collection_id)s

-- name: find_due_sweeps
-- Tables that are due for a sweep: a sweep was requested, or the last sweep was an hour ago, or the table has a recorded
-- trouble and the last attempt was a minute ago. In the last two cases, at least fifty times the duration of a sweep must
-- have passed. Tables whose sweep includes the collections of values come first. Reads the whole table, which has a row for
-- each attached collection.
SELECT collection_id FROM nearsim_index.attachment
WHERE NOT detaching AND (collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
    AND CASE WHEN trouble IS NOT NULL
        THEN wanted_at < clock_timestamp() - greatest(interval '1 minute', 50 * make_interval(secs => sweep_seconds))
        ELSE (swept_at >= wanted_at) IS NOT TRUE
            OR swept_at < clock_timestamp() - greatest(interval '1 hour', 50 * make_interval(secs => sweep_seconds)) END
ORDER BY parent_id IS NOT NULL, collection_id

-- name: finish_sweep
-- Record a finished sweep of these collections, with the moment at which it began. If changes are not captured, request
-- another sweep of the collection that has the triggers. Relies on attachment_pkey.
UPDATE nearsim_index.attachment SET swept_at = %(began)s, unusable = part.unusable, trouble = part.trouble,
    troubled_at = CASE WHEN part.trouble IS NOT NULL THEN coalesce(troubled_at, clock_timestamp()) END,
    wanted_at = CASE WHEN part.trouble IS NULL THEN wanted_at ELSE clock_timestamp() END,
    sweep_seconds = extract(epoch FROM clock_timestamp() - %(began)s)
FROM (
    SELECT collection_id, unusable, CASE collection_id WHEN %(collection_id)s THEN CAST(%(trouble)s AS text) END AS trouble
    FROM unnest(CAST(%(collection_ids)s AS integer[]), CAST(%(unusable)s AS bigint[])) AS part (collection_id, unusable)
) AS part
WHERE attachment.collection_id = part.collection_id

-- name: find_silent_triggers
-- Triggers of a collection's table that are missing or disabled. Each partition has the row trigger of its table. A table
-- that inherits from the attached table would need a row trigger too, but does not have one. Reads only the catalog.
WITH RECURSIVE attached AS (
    SELECT CAST(relation AS oid) AS oid, coalesce(parent_id, collection_id) AS collection_id
    FROM nearsim_index.attachment WHERE collection_id = %(collection_id)s
), part AS (
    SELECT oid FROM attached
    UNION ALL
    SELECT inhrelid FROM part JOIN pg_catalog.pg_inherits ON inhparent = part.oid
), expected AS (
    SELECT part.oid, format('nearsim_%%s_rows', collection_id) AS name FROM part CROSS JOIN attached
    UNION ALL
    SELECT oid, format('nearsim_%%s_truncate', collection_id) FROM attached
)
SELECT format('trigger %%s is %%s on %%s', name, CASE WHEN tgenabled IS NULL THEN 'missing' ELSE 'disabled' END,
    CAST(expected.oid AS regclass))
FROM expected LEFT JOIN pg_catalog.pg_trigger ON tgrelid = expected.oid AND tgname = name
WHERE (tgenabled IN ('A', 'O')) IS NOT TRUE
ORDER BY name, expected.oid

-- name: make_expression
-- Create an empty copy of a table with a column that an expression computes. PostgreSQL refuses to do so if the expression
-- is not immutable, reads other tables, or has another type.
CREATE TEMPORARY TABLE nearsim_expression (LIKE {relation});
ALTER TABLE pg_temp.nearsim_expression ADD COLUMN "nearsim expression" {type} GENERATED ALWAYS AS ({expression}) STORED

-- name: read_expression
-- The expression as PostgreSQL prints it, the columns that it reads, and the objects it uses that are not part of
-- PostgreSQL. Reads only the catalog.
SELECT pg_get_expr(adbin, adrelid),
    ARRAY(
        SELECT DISTINCT CAST(attname AS text) FROM pg_catalog.pg_depend
        JOIN pg_catalog.pg_attribute ON attrelid = refobjid AND pg_attribute.attnum = refobjsubid
        WHERE refclassid = CAST('pg_class' AS regclass) AND refobjid = adrelid AND refobjsubid <> adnum
            AND (classid, objid) IN ((CAST('pg_attrdef' AS regclass), pg_attrdef.oid), (CAST('pg_class' AS regclass), adrelid))
        ORDER BY 1),
    ARRAY(
        SELECT pg_describe_object(refclassid, refobjid, refobjsubid) FROM pg_catalog.pg_depend
        WHERE classid = CAST('pg_attrdef' AS regclass) AND objid = pg_attrdef.oid
            AND (refclassid <> CAST('pg_class' AS regclass) OR refobjid <> adrelid)
        ORDER BY 1)
FROM pg_catalog.pg_attrdef WHERE adrelid = CAST('pg_temp.nearsim_expression' AS regclass)
ORDER BY adnum DESC LIMIT 1

-- name: list_base_tables
-- The tables that a view reads. Reads only the catalog.
SELECT DISTINCT quote_ident(nspname) || '.' || quote_ident(relname)
FROM pg_catalog.pg_rewrite
JOIN pg_catalog.pg_depend ON classid = CAST('pg_rewrite' AS regclass) AND objid = pg_rewrite.oid
    AND refclassid = CAST('pg_class' AS regclass) AND refobjid <> ev_class
JOIN pg_catalog.pg_class ON pg_class.oid = refobjid AND relkind IN ('r', 'p')
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE ev_class = CAST(%(relation)s AS oid)
ORDER BY 1

-- name: use_own_search_path
-- Look up names as the user's sessions outside nearsim do, until the transaction ends.
SELECT set_config('search_path', reset_val, true) FROM pg_catalog.pg_settings WHERE name = 'search_path'

-- name: read_search_path
-- The schemas of the search path, in its order. The statement itself must not use functions or operators from these schemas.
SELECT CAST(pg_catalog.current_schemas(true) AS pg_catalog.text[])

-- name: find_relation
-- The table or view that a name means. The exact spelling takes precedence over lower case. If no schema is named, the
-- search path `path` decides. Reads only the catalog.
SELECT pg_class.oid, nspname, relname
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relname = ANY(CAST(%(names)s AS text[]))
    AND nspname = ANY(coalesce(CAST(%(schemas)s AS text[]), CAST(%(path)s AS text[])))
ORDER BY array_position(CAST(%(schemas)s AS text[]), CAST(nspname AS text)),
    array_position(CAST(%(names)s AS text[]), CAST(relname AS text)),
    array_position(CAST(%(path)s AS text[]), CAST(nspname AS text))
LIMIT 1

-- name: use_pinned_search_path
-- Look up names as all sessions of nearsim do.
SET LOCAL search_path = pg_catalog, pg_temp

-- name: read_relation
-- Properties of a table, and the rights on it of the user and of the owner of nearsim's functions. Reads only the catalog.
SELECT namespace.nspname, pg_class.relname, quote_ident(namespace.nspname),
    quote_ident(namespace.nspname) || '.' || quote_ident(pg_class.relname),
    CAST(pg_class.relkind AS text), CAST(pg_class.relpersistence AS text),
    pg_has_role(pg_class.relowner, 'USAGE'), quote_ident(pg_get_userbyid(pg_class.relowner)),
    row_security_active(pg_class.oid),
    pg_class.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = pg_class.oid),
    has_schema_privilege(namespace.oid, 'USAGE'), has_schema_privilege(document.relowner, namespace.oid, 'USAGE'),
    nearsim.foreign_code(pg_class.oid)
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = pg_class.relnamespace
JOIN pg_catalog.pg_class AS document ON document.oid = CAST('nearsim.document' AS regclass)
WHERE pg_class.oid = CAST(%(relation)s AS oid)

-- name: read_relation_name
-- Name of a table, and whether the user may use its schema. Reads only the catalog.
SELECT nspname, relname, has_schema_privilege(pg_namespace.oid, 'USAGE')
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE pg_class.oid = CAST(%(relation)s AS oid)

-- name: lock_definition
-- Lock a table against changes of its definition until the transaction ends. The query is analysed but not planned, because
-- planning would run functions in expressions of the table's indexes. LOCK would need rights on all columns.
PREPARE nearsim_source AS SELECT FROM {relation};
DEALLOCATE nearsim_source

-- name: read_current_types
-- Present types of columns of a table, whatever the snapshot of the transaction. The names have no qualifier, so that they
-- can only mean columns. Reads only the catalog.
SELECT {types} FROM (SELECT (CAST(NULL AS {relation})).*) AS attached

-- name: read_columns
-- Columns of a table, each with its declared type, base type and collation, and whether it is virtual, unique, the first
-- column of an index, readable by the user, readable by the owner of nearsim's functions, generated, writable by the user,
-- and NOT NULL. Reads only the catalog.
WITH RECURSIVE kind AS (
    SELECT attnum, atttypid AS type FROM pg_catalog.pg_attribute
    WHERE attrelid = CAST(%(relation)s AS oid) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, typbasetype FROM kind JOIN pg_catalog.pg_type ON oid = type WHERE typbasetype <> 0
)
SELECT attname, CAST(atttypid AS bigint), format_type(type, NULL), collation_in.nspname, collname, CAST(attgenerated AS text) = 'v',
    EXISTS (
        SELECT FROM pg_catalog.pg_index
        WHERE indrelid = attrelid AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL
            AND indnkeyatts = 1 AND indkey[0] = attnum),
    EXISTS (
        SELECT FROM pg_catalog.pg_index
        WHERE indrelid = attrelid AND indisvalid AND indpred IS NULL AND indkey[0] = attnum),
    has_column_privilege(attrelid, attname, 'SELECT'),
    has_column_privilege(pg_get_userbyid(document.relowner), attrelid, attname, 'SELECT'), quote_ident(pg_get_userbyid(document.relowner)),
    attgenerated <> '', has_column_privilege(attrelid, attname, 'UPDATE'), attnotnull
FROM pg_catalog.pg_attribute JOIN kind USING (attnum) JOIN pg_catalog.pg_type ON pg_type.oid = type AND typbasetype = 0
LEFT JOIN pg_catalog.pg_collation ON pg_collation.oid = attcollation
LEFT JOIN pg_catalog.pg_namespace AS collation_in ON collation_in.oid = collnamespace
JOIN pg_catalog.pg_class AS document ON document.oid = CAST('nearsim.document' AS regclass)
WHERE attrelid = CAST(%(relation)s AS oid) AND NOT attisdropped
