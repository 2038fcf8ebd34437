-- Fires for every row that an application writes. Therefore it only appends: it waits for no lock and rejects nothing. It
-- captures only ids of rows to be compared later, so somebody who creates another trigger with this function can only cause
-- comparisons. It runs with its owner's rights, so no code of the table's owner may run in it. For this reason, columns are
-- named without a qualifier, because a qualified name that is not a column is a function call on the row; and values become
-- text only through format(), which calls output functions, because a cast could be user-defined. Only the attached columns
-- are compared, because other columns may be large.
CREATE FUNCTION nearsim.capture_source() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    followed constant integer := TG_ARGV[0];
    columns text;
    before text[];
    after text[];
    captured text;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO nearsim.change (collection_id) VALUES (followed);
        RETURN NULL;
    END IF;
    BEGIN
        FOR place IN 1 .. CASE TG_OP WHEN 'UPDATE' THEN TG_NARGS - 1 ELSE 2 END LOOP
            columns := concat_ws(', ', columns, CASE WHEN TG_ARGV[place] = '' THEN 'NULL' ELSE
                format('CASE WHEN %1$I IS NOT NULL THEN format(''%%s'', %1$I) END', TG_ARGV[place]) END);
        END LOOP;
        IF TG_OP <> 'INSERT' THEN
            EXECUTE format('SELECT ARRAY[%s] FROM (SELECT ($1).*) AS written', columns) INTO before USING OLD;
        END IF;
        IF TG_OP <> 'DELETE' THEN
            EXECUTE format('SELECT ARRAY[%s] FROM (SELECT ($1).*) AS written', columns) INTO after USING NEW;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        captured := format('%s in %s', TG_ARGV[0], pg_current_xact_id());
        IF current_setting('nearsim.captured', true) IS DISTINCT FROM captured THEN
            PERFORM set_config('nearsim.captured', captured, true);
            INSERT INTO nearsim.change (collection_id) VALUES (followed);
            RAISE WARNING 'nearsim cannot capture this write to % (the whole table is compared later): %',
                CAST(TG_RELID AS regclass), SQLERRM;
        END IF;
        RETURN NULL;
    END;
    IF before IS NOT DISTINCT FROM after COLLATE "C" THEN
        RETURN NULL;
    END IF;
    IF octet_length(after[1]) BETWEEN 1 AND 1024 THEN
        INSERT INTO nearsim.change (collection_id, external_id, collection_value) VALUES (followed, after[1], after[2]);
    END IF;
    IF before[1:2] IS DISTINCT FROM after[1:2] COLLATE "C" AND octet_length(before[1]) BETWEEN 1 AND 1024 THEN
        INSERT INTO nearsim.change (collection_id, external_id, collection_value) VALUES (followed, before[1], before[2]);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_source() IS
    'Trigger on attached tables: captures the ids of written rows. Its arguments are the number of the collection, the id column, the column by whose values rows are distributed to collections (or an empty string), and the other attached columns';
