-- A statement trigger fires only on the table that the statement names, so parents and partitions both have these triggers.
-- Triggers fire in the order of their names, so an UPDATE captures the old rows before the new ones.
CREATE FUNCTION nearsim.create_capture_triggers(suffix text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given record;
    named text;
BEGIN
    FOR given IN
        SELECT * FROM (VALUES
            ('similar_pair', 'capture_insert', 'INSERT', 'NEW TABLE AS after_rows', 'capture_pairs_after'),
            ('similar_pair', 'capture_update_from', 'UPDATE', 'OLD TABLE AS before_rows', 'capture_pairs_before'),
            ('similar_pair', 'capture_update_to', 'UPDATE', 'NEW TABLE AS after_rows', 'capture_pairs_after'),
            ('similar_pair', 'capture_delete', 'DELETE', 'OLD TABLE AS before_rows', 'capture_pairs_before'),
            ('signature', 'capture_insert', 'INSERT', 'NEW TABLE AS captured_rows', 'capture_twins'),
            ('signature', 'capture_update_from', 'UPDATE', 'OLD TABLE AS captured_rows', 'capture_twins'),
            ('signature', 'capture_update_to', 'UPDATE', 'NEW TABLE AS captured_rows', 'capture_twins'),
            ('signature', 'capture_delete', 'DELETE', 'OLD TABLE AS captured_rows', 'capture_twins'),
            ('signature', 'follow_insert', 'INSERT', 'NEW TABLE AS after_rows', 'follow_signatures'),
            ('signature', 'follow_update', 'UPDATE', 'NEW TABLE AS after_rows', 'follow_signatures'),
            ('signature', 'follow_delete', 'DELETE', 'OLD TABLE AS before_rows', 'follow_signatures'),
            ('cluster_member', 'capture_insert', 'INSERT', 'NEW TABLE AS after_rows', 'capture_members_inserted'),
            ('cluster_member', 'capture_update_from', 'UPDATE', 'OLD TABLE AS before_rows', 'capture_members_before'),
            ('cluster_member', 'capture_delete', 'DELETE', 'OLD TABLE AS before_rows', 'capture_members_before')
        ) AS wanted (parent, name, operation, rows, function)
    LOOP
        named := format('%I.%I', CASE suffix WHEN '' THEN 'nearsim' ELSE 'nearsim_index' END, given.parent || suffix);
        CONTINUE WHEN to_regclass(named) IS NULL
            OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(named) AND tgname = given.name);
        EXECUTE format('CREATE TRIGGER %I AFTER %s ON %s REFERENCING %s FOR EACH STATEMENT EXECUTE FUNCTION nearsim.%I()',
            given.name, given.operation, named, given.rows, given.function);
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.create_capture_triggers(text) IS
    'Internal (used by every build of a large collection): creates the missing triggers that capture changes on the tables whose names end with a suffix';
