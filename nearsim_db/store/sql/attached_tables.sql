-- name: list_attachments
-- Which collections follow a table, of all or of one. The name is NULL where the table is gone.
SELECT collection_id, collection.name, CAST(CAST(relation AS oid) AS bigint),
    (SELECT quote_ident(nspname) || '.' || quote_ident(relname)
    FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE pg_class.oid = relation),
    id_column, text_column, title_column, source_column, url_column, published_at_column,
    attached_at, wanted_at, swept_at, sweep_seconds, unusable, detaching, trouble, troubled_at
FROM nearsim.attachment JOIN nearsim.collection USING (collection_id)
WHERE collection_id = %(collection_id)s OR %(collection_id)s IS NULL
ORDER BY collection.name

-- name: store_attachment
-- Have a collection follow a table; one that does already takes other columns of it from now on.
INSERT INTO nearsim.attachment (collection_id, relation, id_column, text_column, title_column, source_column, url_column,
    published_at_column)
VALUES (%(collection_id)s, CAST(%(relation)s AS oid), %(id)s, %(text)s, %(title)s, %(source)s, %(url)s, %(published_at)s)
ON CONFLICT (collection_id) DO UPDATE SET
    text_column = excluded.text_column, title_column = excluded.title_column, source_column = excluded.source_column,
    url_column = excluded.url_column, published_at_column = excluded.published_at_column,
    wanted_at = clock_timestamp(), trouble = NULL, troubled_at = NULL

-- name: create_source_triggers
-- The triggers of a table that is followed. ALWAYS: replication that applies changes from elsewhere fires them, too.
CREATE OR REPLACE TRIGGER {rows} AFTER INSERT OR UPDATE OR DELETE ON {relation}
    FOR EACH ROW EXECUTE FUNCTION nearsim.note_source({arguments});
CREATE OR REPLACE TRIGGER {truncate} AFTER TRUNCATE ON {relation}
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_source({arguments});
ALTER TABLE {relation} ENABLE ALWAYS TRIGGER {rows}, ENABLE ALWAYS TRIGGER {truncate}

-- name: drop_source_triggers
-- Nothing of ours stays on a table that was followed.
DROP TRIGGER IF EXISTS {rows} ON {relation};
DROP TRIGGER IF EXISTS {truncate} ON {relation}

-- name: set_detaching
-- From now on a table is not followed.
UPDATE nearsim.attachment SET detaching = true WHERE collection_id = %(collection_id)s

-- name: forget_attachment
-- The collection follows no table any more.
WITH noted AS (
    DELETE FROM nearsim.change WHERE collection_id = %(collection_id)s AND doc_id IS NULL
)
DELETE FROM nearsim.attachment WHERE collection_id = %(collection_id)s

-- name: find_noted
-- The collections of which source rows were noted. Reads all of nearsim.change, which is short.
SELECT DISTINCT collection_id FROM nearsim.change WHERE doc_id IS NULL AND collection_id IS NOT NULL ORDER BY 1

-- name: take_noted
-- Take notes of source rows of one collection; NULL stands for all of its table. Reads nearsim.change up to the last of them.
DELETE FROM nearsim.change WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM nearsim.change WHERE collection_id = %(collection_id)s AND doc_id IS NULL
    LIMIT %(batch)s FOR UPDATE SKIP LOCKED))
RETURNING external_id

-- name: note_texts
-- Those of some documents whose texts are elsewhere are to be looked at again. Relies on document_pkey.
INSERT INTO nearsim.change (collection_id, external_id)
SELECT collection_id, external_id FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND body_digest IS NOT NULL

-- name: doubt_texts
-- Some documents were to be read whose texts are elsewhere, and are not what they were known to be: their digest is made one
-- that no text has, so that they make a new revision when they are looked at again, which is noted. Relies on document_pkey.
WITH doubted AS (
    UPDATE nearsim.document SET body_digest = '00000000-0000-0000-0000-000000000000'
    WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND collection_id = %(collection_id)s
        AND body_digest <> '00000000-0000-0000-0000-000000000000'
        AND coalesce(published_at, created_at)
            >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity')
    RETURNING collection_id, external_id
)
INSERT INTO nearsim.change (collection_id, external_id) SELECT collection_id, external_id FROM doubted

-- name: want_sweep
-- The whole table is to be swept. Who sweeps already began before this moment, so there will be another.
UPDATE nearsim.attachment SET wanted_at = clock_timestamp() WHERE collection_id = %(collection_id)s

-- name: note_trouble
-- Why a table cannot be followed; what is missed until it can is swept then.
UPDATE nearsim.attachment SET trouble = %(trouble)s, troubled_at = clock_timestamp(), wanted_at = clock_timestamp()
WHERE collection_id = %(collection_id)s

-- name: find_due_sweeps
-- Tables to sweep now: those that are wanted, those that were not for an hour (or for fifty times as long as it takes), and
-- those that could not be followed a minute ago.
SELECT collection_id FROM nearsim.attachment
WHERE NOT detaching AND (collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
    AND CASE WHEN trouble IS NOT NULL THEN troubled_at < clock_timestamp() - interval '1 minute'
        ELSE (swept_at >= wanted_at) IS NOT TRUE
            OR swept_at < clock_timestamp() - greatest(interval '1 hour', 50 * make_interval(secs => sweep_seconds)) END
ORDER BY collection_id

-- name: end_sweep
-- A sweep that began at a moment is done.
UPDATE nearsim.attachment SET swept_at = %(began)s, unusable = %(unusable)s, trouble = NULL, troubled_at = NULL,
    sweep_seconds = extract(epoch FROM clock_timestamp() - %(began)s)
WHERE collection_id = %(collection_id)s

-- name: look_as_user
-- Until the transaction ends names are looked for as the user's own sessions do it.
SELECT set_config('search_path', reset_val, true) FROM pg_catalog.pg_settings WHERE name = 'search_path'

-- name: find_relation
-- The tables and the like that a name may mean, the most likely first: exactly as it is given before in lower case. Without a
-- schema it is looked for where the user's own sessions would.
SELECT pg_class.oid, nspname, relname
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relname = ANY(CAST(%(names)s AS text[]))
    AND CASE WHEN CAST(%(schemas)s AS text[]) IS NULL THEN pg_table_is_visible(pg_class.oid)
        ELSE nspname = ANY(CAST(%(schemas)s AS text[])) END
ORDER BY array_position(CAST(%(schemas)s AS text[]), CAST(nspname AS text)),
    array_position(CAST(%(names)s AS text[]), CAST(relname AS text))
LIMIT 1

-- name: look_as_ours
-- Names are looked for as in all our sessions.
SET LOCAL search_path = pg_catalog, pg_temp

-- name: read_relation
-- What a table is like, and what the user, and the owner of our functions, may do with it. Its owner is trusted who is the user
-- or could be the owner of our schema.
SELECT there.nspname, pg_class.relname, quote_ident(there.nspname),
    quote_ident(there.nspname) || '.' || quote_ident(pg_class.relname),
    CAST(pg_class.relkind AS text), CAST(pg_class.relpersistence AS text),
    pg_has_role(pg_class.relowner, 'USAGE'), quote_ident(pg_get_userbyid(pg_class.relowner)),
    pg_get_userbyid(pg_class.relowner) = current_user OR pg_has_role(pg_class.relowner, here.nspowner, 'MEMBER'),
    row_security_active(pg_class.oid),
    pg_class.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = pg_class.oid),
    has_schema_privilege(there.oid, 'USAGE'), has_schema_privilege(ours.relowner, there.oid, 'USAGE')
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS there ON there.oid = pg_class.relnamespace
JOIN pg_catalog.pg_class AS ours ON ours.oid = CAST('nearsim.document' AS regclass)
JOIN pg_catalog.pg_namespace AS here ON here.oid = ours.relnamespace
WHERE pg_class.oid = CAST(%(relation)s AS oid)

-- name: read_columns
-- The columns of a table: the type that each is at bottom, its collation, whether it is computed when it is read, whether no
-- two rows have the same in it, and whether the user, and the owner of our functions, may read it.
WITH RECURSIVE kind AS (
    SELECT attnum, atttypid AS type FROM pg_catalog.pg_attribute
    WHERE attrelid = CAST(%(relation)s AS oid) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, typbasetype FROM kind JOIN pg_catalog.pg_type ON oid = type WHERE typbasetype <> 0
)
SELECT attname, format_type(type, NULL), collation_in.nspname, collname, CAST(attgenerated AS text) = 'v',
    EXISTS (
        SELECT FROM pg_catalog.pg_index
        WHERE indrelid = attrelid AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL
            AND indnkeyatts = 1 AND indkey[0] = attnum),
    has_column_privilege(attrelid, attname, 'SELECT'),
    has_column_privilege(pg_get_userbyid(ours.relowner), attrelid, attname, 'SELECT'), quote_ident(pg_get_userbyid(ours.relowner))
FROM pg_catalog.pg_attribute JOIN kind USING (attnum) JOIN pg_catalog.pg_type ON pg_type.oid = type AND typbasetype = 0
LEFT JOIN pg_catalog.pg_collation ON pg_collation.oid = attcollation
LEFT JOIN pg_catalog.pg_namespace AS collation_in ON collation_in.oid = collnamespace
JOIN pg_catalog.pg_class AS ours ON ours.oid = CAST('nearsim.document' AS regclass)
WHERE attrelid = CAST(%(relation)s AS oid) AND NOT attisdropped
