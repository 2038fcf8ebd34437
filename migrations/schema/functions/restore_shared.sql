-- The readable rows are copied to a second table while other sessions can still read the damaged table; at the commit they
-- replace its rows. This is the only place that creates the indexes, also in a new database.
CREATE FUNCTION nearsim.restore_shared(parent text) RETURNS integer[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    leaf constant regclass := CAST(format('nearsim_index.%I', parent || '_shared') AS regclass);
    damaged_ids integer[] := '{}';
    generation_id integer;
    command text;
BEGIN
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', leaf);
    EXECUTE format('CREATE TEMPORARY TABLE kept AS SELECT * FROM %s WITH NO DATA', leaf);
    BEGIN
        EXECUTE format('INSERT INTO kept SELECT * FROM %s', leaf);
    EXCEPTION WHEN data_corrupted OR index_corrupted OR internal_error OR undefined_file OR io_error THEN
        -- The key finds the rows of a generation without reading the rows of other generations.
        SET LOCAL enable_seqscan = off;
        FOR generation_id IN SELECT generation.generation_id FROM nearsim.generation ORDER BY generation.generation_id LOOP
            BEGIN
                EXECUTE format('INSERT INTO kept SELECT * FROM %s WHERE generation_id = $1', leaf) USING generation_id;
            EXCEPTION WHEN data_corrupted OR index_corrupted OR internal_error OR undefined_file OR io_error THEN
                damaged_ids := damaged_ids || generation_id;
            END;
        END LOOP;
        SET LOCAL enable_seqscan = DEFAULT;
    END;
    -- A crash empties an unlogged table.
    IF (SELECT relpersistence = 'u' FROM pg_class WHERE oid = leaf) THEN
        damaged_ids := ARRAY(SELECT generation.generation_id FROM nearsim.generation ORDER BY generation.generation_id);
    END IF;

    FOR command IN
        SELECT format('DROP TRIGGER %I ON %s', tgname, leaf) FROM pg_trigger WHERE tgrelid = leaf AND NOT tgisinternal
        UNION ALL
        SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', leaf, conname) FROM pg_constraint
        WHERE conrelid = leaf AND contype IN ('p', 'u')
        UNION ALL
        SELECT format('DROP INDEX %s', CAST(indexrelid AS regclass)) FROM pg_index
        WHERE indrelid = leaf AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
    LOOP
        EXECUTE command;
    END LOOP;
    EXECUTE format('TRUNCATE %s', leaf);
    EXECUTE format('ALTER TABLE %s SET LOGGED', leaf);
    IF NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = leaf) THEN
        EXECUTE format('ALTER TABLE nearsim.%I ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (MAXVALUE)', parent, leaf);
    END IF;

    EXECUTE format('INSERT INTO %s SELECT * FROM kept', leaf);
    IF parent = 'similar_pair' THEN
        ALTER TABLE nearsim_index.similar_pair_shared ADD PRIMARY KEY (generation_id, left_id, right_id);
        CREATE INDEX ON nearsim_index.similar_pair_shared (generation_id, right_id);
        CREATE INDEX ON nearsim_index.similar_pair_shared (generation_id, similarity);
        -- One pair in 256, drawn by hash, for the queue "sample" of the review desk.
        CREATE INDEX ON nearsim_index.similar_pair_shared (generation_id, similarity)
            WHERE hashint8extended(left_id, right_id) & 255 = 0;
    ELSE
        ALTER TABLE nearsim_index.cluster_member_shared ADD PRIMARY KEY (generation_id, doc_id),
            ADD UNIQUE (generation_id, cluster_id, is_survivor, doc_id);
    END IF;
    PERFORM nearsim.create_capture_triggers('_shared');
    DROP TABLE kept;
    RETURN damaged_ids;
END
$$;
COMMENT ON FUNCTION nearsim.restore_shared(text) IS
    'Internal (used by verify-index): rebuilds the table of all pairs, or of all cluster members, from the rows that can be read, with its indexes and triggers; returns the generations that may have lost rows';
