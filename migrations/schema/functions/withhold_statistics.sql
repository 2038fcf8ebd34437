-- Planner statistics contain values, also of rows that row-level security hides, and EXPLAIN shows estimates that depend on
-- them: a role that may name a column in a condition could search for its values. Statistics also outlive a purge. Therefore
-- statistics are kept only of numbers that nearsim assigned and of states of work. They are not kept of bucket hashes, because
-- these are computed from texts.
CREATE FUNCTION nearsim.shown_statistics(relation regclass)
RETURNS TABLE (place smallint, name name, is_index boolean, has_values boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT attnum, pg_attribute.attname, relkind IN ('i', 'I'), kept.has_values
    FROM pg_namespace JOIN pg_class ON relnamespace = pg_namespace.oid
    JOIN pg_attribute ON attrelid = pg_class.oid
    LEFT JOIN pg_index ON indexrelid = pg_class.oid
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM pg_stats
            WHERE schemaname = nspname AND tablename = relname AND pg_stats.attname = pg_attribute.attname
                AND num_nonnulls(most_common_vals, histogram_bounds, most_common_elems) > 0)
    ) AS kept (has_values)
    WHERE pg_class.oid = CAST(shown_statistics.relation AS oid) AND attnum > 0 AND NOT attisdropped
        AND relname <> 'alembic_version'
        AND CASE WHEN relkind IN ('i', 'I') THEN indkey[attnum - 1] = 0 ELSE relkind IN ('r', 'p') AND
            pg_attribute.attname <> ALL (ARRAY[
                'doc_id', 'collection_id', 'profile_id', 'generation_id', 'left_id', 'right_id', 'head_id', 'cluster_id',
                'survivor_id', 'event_id', 'verdict_id', 'probe_id', 'lease_id', 'lost_lease_id', 'pending_id', 'revision',
                'band_no', 'is_survivor', 'pruned', 'kind', 'state', 'stage', 'slice_no', 'low', 'high', 'done',
                'attempts', 'again', 'reached', 'queued_at', 'due_at', 'set_aside_at'])
            END
        AND (coalesce(attstattarget, -1) <> 0 OR kept.has_values);
END;
COMMENT ON FUNCTION nearsim.shown_statistics(regclass) IS
    'Internal (used by doctor and withhold_statistics): columns and index expressions with users'' data of which ANALYZE would keep values or has kept values';

-- Stores only the number of distinct values. Without a statistic, the planner expects each name in a two-hundredth of the
-- rows. For all partitions of the bands together, the stored number is 1: the planner then expects that sorting or hashing all
-- rows would match every row with every other, so it joins band rows by index, however few or many they are.
-- Before PostgreSQL 18 this needs a superuser or an empty table: ANALYZE of a single row stores the number, and later runs of
-- ANALYZE, which skip the column, keep it.
CREATE FUNCTION nearsim.store_distinctness(relation regclass, distinct_column name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored record;
    filled regclass;
    has_rows boolean;
BEGIN
    SELECT nspname, relname, attnum, relkind = 'p' AS is_parent, CAST(CASE relkind WHEN 'p' THEN 1 ELSE -1 END AS real) AS number
    INTO stored
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    JOIN pg_attribute ON attrelid = pg_class.oid AND attname = distinct_column
    WHERE pg_class.oid = relation AND NOT EXISTS (
        SELECT FROM pg_stats WHERE schemaname = nspname AND tablename = relname AND pg_stats.attname = distinct_column);
    IF NOT FOUND THEN
        RETURN;
    ELSIF current_setting('server_version_num')::integer >= 180000 THEN
        PERFORM pg_restore_attribute_stats('schemaname', stored.nspname::text, 'relname', stored.relname::text,
            'attname', distinct_column::text, 'inherited', stored.is_parent, 'n_distinct', stored.number);
    ELSIF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        INSERT INTO pg_statistic (starelid, staattnum, stainherit, stanullfrac, stawidth, stadistinct, stakind1, stakind2,
            stakind3, stakind4, stakind5, staop1, staop2, staop3, staop4, staop5, stacoll1, stacoll2, stacoll3, stacoll4, stacoll5)
        VALUES (relation, stored.attnum, stored.is_parent, 0, 8, stored.number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    ELSIF distinct_column = 'bucket_hash' THEN
        filled := CASE WHEN stored.is_parent THEN 'nearsim_index.band_shared' ELSE relation END;
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', filled) INTO has_rows;
        IF has_rows OR EXISTS (SELECT FROM pg_inherits WHERE inhparent = relation AND inhrelid <> filled) THEN
            RETURN;
        END IF;
        EXECUTE format('INSERT INTO %s (generation_id, bucket_hash, doc_id) VALUES (%s, 0, 1)', filled,
            CASE WHEN filled::text = 'nearsim_index.band_shared' THEN '1' ELSE 'DEFAULT' END);
        EXECUTE format('ALTER TABLE ONLY %s ALTER bucket_hash SET (%s = %s), ALTER bucket_hash SET STATISTICS -1', relation,
            CASE WHEN stored.is_parent THEN 'n_distinct_inherited' ELSE 'n_distinct' END, stored.number);
        EXECUTE format('ANALYZE %s (bucket_hash)', relation);
        EXECUTE format('ALTER TABLE ONLY %s ALTER bucket_hash SET STATISTICS 0', relation);
        EXECUTE format('TRUNCATE %s', filled);
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.store_distinctness(regclass, name) IS
    'Internal (used by withhold_statistics): makes the planner expect a different value of a column in each row, or the same value in all rows of a partitioned table, without keeping values';

CREATE FUNCTION nearsim.withhold_statistics(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_superuser constant boolean := (SELECT rolsuper FROM pg_roles WHERE rolname = current_user);
    shown record;
BEGIN
    FOR shown IN
        SELECT statistic.*, nspname, relname FROM nearsim.shown_statistics(relation) AS statistic
        JOIN pg_class ON pg_class.oid = relation JOIN pg_namespace ON pg_namespace.oid = relnamespace
    LOOP
        EXECUTE format('ALTER %s %s ALTER COLUMN %s SET STATISTICS 0', CASE WHEN shown.is_index THEN 'INDEX' ELSE 'TABLE' END,
            relation, CASE WHEN shown.is_index THEN shown.place::text ELSE quote_ident(shown.name) END);
        IF shown.has_values AND current_setting('server_version_num')::integer >= 180000 THEN
            PERFORM pg_clear_attribute_stats(shown.nspname::text, shown.relname::text, shown.name::text, inherited)
            FROM (VALUES (false), (true)) AS kind (inherited);
        ELSIF shown.has_values AND is_superuser THEN
            DELETE FROM pg_statistic WHERE starelid = relation AND staattnum = shown.place;
        END IF;
    END LOOP;
    CASE
        WHEN relation::text = 'nearsim.collection' THEN PERFORM nearsim.store_distinctness(relation, 'name');
        WHEN relation::text = 'nearsim.document' THEN PERFORM nearsim.store_distinctness(relation, 'external_id');
        WHEN relation::text ~ '^(nearsim\.band|nearsim_index\.band_([0-9]+|shared))$' THEN
            PERFORM nearsim.store_distinctness(relation, 'bucket_hash');
        ELSE NULL;
    END CASE;
END
$$;
COMMENT ON FUNCTION nearsim.withhold_statistics(regclass) IS
    'Internal (used by nearsim): prevents ANALYZE from keeping values of users'' data in a table, and removes the values that it has kept';

CREATE FUNCTION nearsim.withhold_all_statistics() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT nearsim.withhold_statistics(oid) FROM pg_class
    WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
        AND relkind IN ('r', 'p', 'i', 'I') AND pg_has_role(relowner, 'USAGE');
END;
COMMENT ON FUNCTION nearsim.withhold_all_statistics() IS
    'Internal (used by nearsim schema init and access grant): calls withhold_statistics for all tables and indexes, for example after a restore';

-- Does for names of collections and external_ids of documents what store_distinctness does for bands.
INSERT INTO nearsim.collection (collection_id, name) OVERRIDING SYSTEM VALUE VALUES (1, 'any');
INSERT INTO nearsim.document (doc_id, collection_id, external_id, revision) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'any', 0);
ALTER TABLE nearsim.collection ALTER name SET (n_distinct = -1);
ALTER TABLE nearsim.document ALTER external_id SET (n_distinct = -1);
ANALYZE nearsim.collection (name), nearsim.document (external_id);
TRUNCATE nearsim.collection CASCADE;
-- Without this, PostgreSQL 18 expects one row on each page until the tables are analyzed.
ANALYZE nearsim.collection (name), nearsim.document (external_id);

SELECT nearsim.withhold_all_statistics();
