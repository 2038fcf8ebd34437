-- Triggers on pairs, signatures and members, on a generation's own tables and on their parents, note what each statement
-- did. Nothing is joined here: what cancels out is found when the transaction commits.
CREATE FUNCTION nearsim.note_pairs_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.event_draft (generation_id, kind, left_ids, right_ids, similarities)
    SELECT generation_id, 'pairs_gone', array_agg(left_id), array_agg(right_id), array_agg(similarity)
    FROM before_rows GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.note_pairs_gone() IS 'Trigger: notes pairs that a statement removed, or changed, as they were';

CREATE FUNCTION nearsim.note_pairs_come() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.event_draft (generation_id, kind, left_ids, right_ids, similarities)
    SELECT generation_id, 'pairs_come', array_agg(left_id), array_agg(right_id), array_agg(similarity)
    FROM after_rows GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.note_pairs_come() IS 'Trigger: notes pairs that a statement stored, or changed, as they are';

CREATE FUNCTION nearsim.note_twins_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.event_draft (generation_id, kind, left_ids, right_ids, similarities)
    SELECT generation_id, 'pairs_gone', array_agg(head_id), array_agg(doc_id),
        array_fill(CAST(1 AS double precision), ARRAY[CAST(count(*) AS integer)])
    FROM before_rows WHERE head_id <> doc_id GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.note_twins_gone() IS 'Trigger: notes which twins had which head before a statement';

CREATE FUNCTION nearsim.note_twins_come() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.event_draft (generation_id, kind, left_ids, right_ids, similarities)
    SELECT generation_id, 'pairs_come', array_agg(head_id), array_agg(doc_id),
        array_fill(CAST(1 AS double precision), ARRAY[CAST(count(*) AS integer)])
    FROM after_rows WHERE head_id <> doc_id GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.note_twins_come() IS 'Trigger: notes which twins have which head after a statement';

CREATE FUNCTION nearsim.note_members_before() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.event_draft (generation_id, kind, doc_ids, cluster_ids, survive)
    SELECT generation_id, 'members', array_agg(doc_id), array_agg(cluster_id), array_agg(is_survivor)
    FROM before_rows GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.note_members_before() IS 'Trigger: notes members of clusters as they were before a statement';

CREATE FUNCTION nearsim.note_members_new() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.event_draft (generation_id, kind, doc_ids)
    SELECT generation_id, 'members', array_agg(doc_id) FROM after_rows GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.note_members_new() IS 'Trigger: notes documents that were in no cluster before a statement';

-- A generation that goes with its collection loses its profile first; so the profile notes it before it goes.
CREATE FUNCTION nearsim.note_turn() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.event_draft (generation_id, kind, collection_id, profile_id)
    SELECT OLD.generation_id, CASE WHEN TG_OP = 'UPDATE' AND NEW.state = 'live' THEN 'live' ELSE 'not_live' END,
        collection_id, profile_id
    FROM nearsim.profile JOIN nearsim.collection USING (collection_id)
    WHERE profile_id = OLD.profile_id AND NOT temporary;
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION nearsim.note_turn() IS 'Trigger: notes that a generation became live, or no longer is';

CREATE FUNCTION nearsim.note_turns() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.event_draft (generation_id, kind, collection_id, profile_id)
    SELECT generation_id, 'not_live', OLD.collection_id, OLD.profile_id
    FROM nearsim.generation WHERE profile_id = OLD.profile_id AND state = 'live';
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION nearsim.note_turns() IS 'Trigger: notes that the live generation of a profile goes with it';

CREATE TRIGGER generation_note_turn AFTER UPDATE OF state ON nearsim.generation
    FOR EACH ROW WHEN ((OLD.state = 'live') <> (NEW.state = 'live')) EXECUTE FUNCTION nearsim.note_turn();
CREATE TRIGGER generation_note_gone BEFORE DELETE ON nearsim.generation
    FOR EACH ROW WHEN (OLD.state = 'live') EXECUTE FUNCTION nearsim.note_turn();
CREATE TRIGGER profile_note_gone BEFORE DELETE ON nearsim.profile
    FOR EACH ROW EXECUTE FUNCTION nearsim.note_turns();
