-- A generation that goes live is told of after that, in slices, as work of stage tell: pairs, and clusters as if they were
-- pairs of their cluster_id and the largest number, in one order. What comes up to (told_left_id, told_right_id) has been
-- told, and is kept up with by every transaction that changes it; the rest does not exist for events until its slice.
ALTER TABLE nearsim.generation
    ADD COLUMN told_left_id bigint,
    ADD COLUMN told_right_id bigint,
    ADD CONSTRAINT generation_told_while_live CHECK (
        (told_left_id IS NULL) = (told_right_id IS NULL) AND (told_left_id IS NULL OR state = 'live'));
COMMENT ON COLUMN nearsim.generation.told_left_id IS
    'The left document of the last pair, or the cluster, that was told of since it answers; NULL once all are';
COMMENT ON COLUMN nearsim.generation.told_right_id IS
    'The right document of that pair, or the largest number after a cluster';

-- Whatever is queued fulfils it, as one stage more is allowed: no scan is needed under the lock.
ALTER TABLE nearsim.work
    DROP CONSTRAINT work_stage_known,
    ADD CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'anchor', 'link', 'compare', 'tell')) NOT VALID;
COMMENT ON COLUMN nearsim.work.stage IS
    'sign, search (for pairs), anchor (through a whole bucket), link (clusters), compare (all documents) or tell (events of an index that went live)';
COMMENT ON COLUMN nearsim.backlog.stage IS
    'change (noted, no work yet), compare (all documents), sign, search, anchor (a whole bucket), link (clusters), tell (events of an index that went live)';

-- Before the state changes, so that the work is queued, under the lock of the row, before anything is told.
CREATE FUNCTION nearsim.turn() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.state = 'live' THEN
        NEW.told_left_id := NULL;
        NEW.told_right_id := NULL;
        DELETE FROM nearsim.work WHERE generation_id = OLD.generation_id AND stage = 'tell';
    ELSIF NOT (
        SELECT temporary FROM nearsim.profile JOIN nearsim.collection USING (collection_id)
        WHERE profile_id = NEW.profile_id)
    THEN
        NEW.told_left_id := 0;
        NEW.told_right_id := 0;
        INSERT INTO nearsim.work (generation_id, doc_id, stage) VALUES (NEW.generation_id, 0, 'tell')
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION nearsim.turn() IS
    'Trigger: a generation that becomes live is to be told of; one that no longer is, is not';

CREATE TRIGGER generation_turn BEFORE UPDATE OF state ON nearsim.generation
    FOR EACH ROW WHEN ((OLD.state = 'live') <> (NEW.state = 'live')) EXECUTE FUNCTION nearsim.turn();
