-- Before the state changes, so that the work is queued, under the lock of the row, before anything is published.
CREATE FUNCTION nearsim.set_promotion_position() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.state = 'live' THEN
        NEW.published_left_id := NULL;
        NEW.published_right_id := NULL;
        DELETE FROM nearsim.work WHERE generation_id = OLD.generation_id AND stage = 'publish';
    -- The first documents of a small collection often have neither pairs nor twins: then there is nothing to publish. No
    -- other session writes pairs before a first build is completed.
    ELSIF OLD.state <> 'building' OR NEW.generation_id >= 100000000
        OR EXISTS (SELECT FROM nearsim_index.similar_pair_shared WHERE generation_id = NEW.generation_id)
        OR EXISTS (SELECT FROM nearsim_index.cluster_member_shared WHERE generation_id = NEW.generation_id)
        OR EXISTS (
            SELECT FROM nearsim_index.signature_shared WHERE generation_id = NEW.generation_id AND head_id <> doc_id)
    THEN
        NEW.published_left_id := 0;
        NEW.published_right_id := 0;
        INSERT INTO nearsim.work (generation_id, doc_id, stage) VALUES (NEW.generation_id, 0, 'publish')
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION nearsim.set_promotion_position() IS
    'Trigger: starts publishing the events of a promoted generation, or stops when it is retired';

CREATE TRIGGER generation_set_promotion_position BEFORE UPDATE OF state ON nearsim.generation
    FOR EACH ROW WHEN ((OLD.state = 'live') <> (NEW.state = 'live')) EXECUTE FUNCTION nearsim.set_promotion_position();
