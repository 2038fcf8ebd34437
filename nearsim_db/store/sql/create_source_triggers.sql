-- The triggers of a table that is followed. ALWAYS: replication that applies changes from elsewhere fires them, too.
CREATE OR REPLACE TRIGGER {rows} AFTER INSERT OR UPDATE OR DELETE ON {relation}
    FOR EACH ROW EXECUTE FUNCTION nearsim.note_source({arguments});
CREATE OR REPLACE TRIGGER {truncate} AFTER TRUNCATE ON {relation}
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_source({arguments});
ALTER TABLE {relation} ENABLE ALWAYS TRIGGER {rows}, ENABLE ALWAYS TRIGGER {truncate}
