-- Planner statistics hold values, and row estimates of EXPLAIN depend on them also for rows that row-level security hides:
-- a role that may name a column in a condition could search for its values. They also outlive what a purge removes. So
-- there are statistics only of numbers that nearsim gave and of states of work. Hashes of bands are hashes of texts.
CREATE FUNCTION nearsim.withhold_statistics(relation regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    withheld name;
BEGIN
    FOR withheld IN
        SELECT attname FROM pg_attribute
        WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped AND attname <> ALL (ARRAY[
            'doc_id', 'collection_id', 'profile_id', 'generation_id', 'left_id', 'right_id', 'head_id', 'cluster_id',
            'survivor_id', 'event_id', 'verdict_id', 'probe_id', 'lease_id', 'lost_lease_id', 'pending_id', 'revision',
            'band_no', 'is_survivor', 'pruned', 'kind', 'state', 'stage', 'slice_no', 'low', 'high', 'done',
            'attempts', 'again', 'reached', 'queued_at', 'due_at', 'set_aside_at', 'changed_at'])
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', relation, withheld);
    END LOOP;
    -- A new leaf of band: ANALYZE of one row leaves the number of distinct values, and no value; later ones keep it.
    IF relation::text ~ '^nearsim_index\.band_[0-9]+$' AND pg_relation_size(relation) = 0 THEN
        EXECUTE format('INSERT INTO %s (bucket_hash, doc_id) VALUES (0, 1)', relation);
        EXECUTE format('ALTER TABLE %s ALTER bucket_hash SET (n_distinct = -1), ALTER bucket_hash SET STATISTICS -1', relation);
        EXECUTE format('ANALYZE %s (bucket_hash)', relation);
        EXECUTE format('ALTER TABLE %s ALTER bucket_hash SET STATISTICS 0', relation);
        EXECUTE format('TRUNCATE %s', relation);
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.withhold_statistics(regclass) IS
    'Internal (used by nearsim): have ANALYZE keep no values of owners'' data in a table';

-- Without statistics a name would be expected in every two-hundredth row. ANALYZE of one row leaves the number of distinct
-- values, and no value; later ones skip the column and keep that.
INSERT INTO nearsim.collection (collection_id, name) OVERRIDING SYSTEM VALUE VALUES (1, 'any');
INSERT INTO nearsim.document (doc_id, collection_id, external_id, revision) OVERRIDING SYSTEM VALUE VALUES (1, 1, 'any', 0);
ALTER TABLE nearsim.collection ALTER name SET (n_distinct = -1);
ALTER TABLE nearsim.document ALTER external_id SET (n_distinct = -1);
ANALYZE nearsim.collection (name), nearsim.document (external_id);
TRUNCATE nearsim.collection CASCADE;

SELECT nearsim.withhold_statistics(oid) FROM pg_catalog.pg_class
WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind IN ('r', 'p');
ALTER INDEX nearsim.document_age ALTER COLUMN 2 SET STATISTICS 0;
