-- Fires for every row that an application writes, so it only appends: it waits for no lock and rejects nothing. It
-- captures only ids to be compared; a trigger that another user makes with it can only cause comparisons. Values
-- become text by format() alone, which calls output functions: a cast could be user-defined, and would run with the
-- owner's rights. Only the attached columns are compared; others may be large.
CREATE FUNCTION nearsim.capture_source() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    followed constant integer := TG_ARGV[0];
    command text;
    before_id text;
    after_id text;
    differs boolean := true;
    captured text;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO nearsim.change (collection_id) VALUES (followed);
        RETURN NULL;
    END IF;
    BEGIN
        IF TG_OP = 'INSERT' THEN
            EXECUTE format('SELECT format(''%%s'', ($1).%I)', TG_ARGV[1]) INTO after_id USING NEW;
        ELSIF TG_OP = 'DELETE' THEN
            EXECUTE format('SELECT format(''%%s'', ($1).%I)', TG_ARGV[1]) INTO before_id USING OLD;
        ELSE
            command := format('SELECT format(''%%s'', ($1).%1$I), format(''%%s'', ($2).%1$I), false', TG_ARGV[1]);
            FOR place IN 1 .. TG_NARGS - 1 LOOP
                command := command || format(
                    ' OR ($1).%1$I IS NULL <> (($2).%1$I IS NULL)'
                    ' OR format(''%%s'', ($1).%1$I) <> format(''%%s'', ($2).%1$I) COLLATE "C"', TG_ARGV[place]);
            END LOOP;
            EXECUTE command INTO before_id, after_id, differs USING OLD, NEW;
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
    IF differs AND octet_length(after_id) BETWEEN 1 AND 1024 THEN
        INSERT INTO nearsim.change (collection_id, external_id) VALUES (followed, after_id);
    END IF;
    IF differs AND before_id IS DISTINCT FROM after_id AND octet_length(before_id) BETWEEN 1 AND 1024 THEN
        INSERT INTO nearsim.change (collection_id, external_id) VALUES (followed, before_id);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_source() IS
    'Trigger on attached tables: captures the ids of written rows; its arguments are the collection and the columns';
