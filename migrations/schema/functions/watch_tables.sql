-- Triggers of a statement are those of the table that it names, so the parents have them as well as their partitions. Of
-- an update what was is noted before what is: triggers fire in the order of their names.
CREATE FUNCTION nearsim.watch_tables(suffix text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT * FROM (VALUES
            ('similar_pair', 'note_insert', 'INSERT', 'NEW TABLE AS after_rows', 'note_pairs_come'),
            ('similar_pair', 'note_update_of', 'UPDATE', 'OLD TABLE AS before_rows', 'note_pairs_gone'),
            ('similar_pair', 'note_update_to', 'UPDATE', 'NEW TABLE AS after_rows', 'note_pairs_come'),
            ('similar_pair', 'note_delete', 'DELETE', 'OLD TABLE AS before_rows', 'note_pairs_gone'),
            ('signature', 'note_insert', 'INSERT', 'NEW TABLE AS after_rows', 'note_twins_come'),
            ('signature', 'note_update_of', 'UPDATE', 'OLD TABLE AS before_rows', 'note_twins_gone'),
            ('signature', 'note_update_to', 'UPDATE', 'NEW TABLE AS after_rows', 'note_twins_come'),
            ('signature', 'note_delete', 'DELETE', 'OLD TABLE AS before_rows', 'note_twins_gone'),
            ('cluster_member', 'note_insert', 'INSERT', 'NEW TABLE AS after_rows', 'note_members_new'),
            ('cluster_member', 'note_update_of', 'UPDATE', 'OLD TABLE AS before_rows', 'note_members_before'),
            ('cluster_member', 'note_delete', 'DELETE', 'OLD TABLE AS before_rows', 'note_members_before')
        ) AS wanted (parent, name, operation, rows, function)
    LOOP
        EXECUTE format(
            'CREATE TRIGGER %I AFTER %s ON nearsim.%I REFERENCING %s FOR EACH STATEMENT EXECUTE FUNCTION nearsim.%I()',
            given.name, given.operation, given.parent || suffix, given.rows, given.function);
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.watch_tables(text) IS
    'Part of watch_generation: has the tables with a suffix note what is done to them, for events';
