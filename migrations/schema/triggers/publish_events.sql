-- Runs once for each pending event, at commit. The first run publishes all events of the transaction; later runs find none.
-- Changes of a generation whose partitions are detached are not published, because the generation is about to be dropped.
-- Generations do not become live or stop being live while events are published: a transaction that promotes or retires one
-- takes the generation's advisory lock PUBLISH_OR_PROMOTE (28289) exclusively, and other transactions share it. Every
-- transaction takes this lock before the lock EVENT.
CREATE FUNCTION nearsim.publish_events() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    given record;
    published bigint := 0;
BEGIN
    IF NOT EXISTS (SELECT FROM nearsim_index.pending_event AS draft WHERE draft.pending_id = NEW.pending_id) THEN
        RETURN NULL;
    END IF;
    FOR given IN
        SELECT draft.generation_id, bool_or(draft.kind IN ('live', 'not_live')) AS is_turned
        FROM nearsim_index.pending_event AS draft WHERE draft.pending_id >= NEW.pending_id
        GROUP BY draft.generation_id ORDER BY draft.generation_id
    LOOP
        IF given.is_turned THEN
            PERFORM pg_advisory_xact_lock(28289, given.generation_id);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(28289, given.generation_id);
        END IF;
    END LOOP;
    FOR given IN
        SELECT draft.generation_id, coalesce(profile.collection_id, max(draft.collection_id)) AS collection_id,
            coalesce(profile.profile_id, max(draft.profile_id)) AS profile_id,
            coalesce(generation.state = 'live', false) AS is_live,
            (array_agg(draft.kind ORDER BY draft.pending_id) FILTER (WHERE draft.kind IN ('live', 'not_live')))[1] AS turn,
            coalesce(bool_or(draft.kind IN ('pairs_before', 'pairs_after')), false) AS changes_pairs,
            coalesce(bool_or(draft.kind = 'members'), false) AS changes_clusters,
            EXISTS (
                SELECT FROM pg_inherits
                WHERE inhrelid = to_regclass('nearsim_index.' || nearsim.leaf_of('signature', draft.generation_id))
                    AND NOT inhdetachpending
            ) AS is_attached
        FROM nearsim_index.pending_event AS draft
        LEFT JOIN nearsim.generation ON generation.generation_id = draft.generation_id
        LEFT JOIN nearsim.profile ON profile.profile_id = generation.profile_id
        WHERE draft.pending_id >= NEW.pending_id
        GROUP BY draft.generation_id, generation.state, profile.profile_id, profile.collection_id
        ORDER BY turn DESC NULLS LAST, draft.generation_id
    LOOP
        CONTINUE WHEN given.turn IS NULL AND NOT (given.is_live AND given.is_attached);
        PERFORM pg_advisory_xact_lock(28281, 0);
        IF given.turn = 'not_live' THEN
            INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind)
            VALUES (given.collection_id, given.profile_id, given.generation_id, 'generation_gone');
            published := published + 1;
        END IF;
        IF given.turn IS NOT NULL AND given.is_live THEN
            INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind)
            VALUES (given.collection_id, given.profile_id, given.generation_id, 'generation_live');
            published := published + 1;
        ELSIF given.turn IS NULL THEN
            IF given.changes_pairs THEN
                published := published
                    + nearsim.publish_pair_events(given.collection_id, given.profile_id, given.generation_id, NEW.pending_id);
            END IF;
            IF given.changes_clusters THEN
                published := published
                    + nearsim.publish_cluster_events(given.collection_id, given.profile_id, given.generation_id, NEW.pending_id);
            END IF;
        END IF;
    END LOOP;
    DELETE FROM nearsim_index.pending_event AS draft WHERE draft.pending_id >= NEW.pending_id;
    IF published > 0 THEN
        PERFORM pg_notify('nearsim', '');
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.publish_events() IS
    'Trigger: publishes the net changes of a transaction as events when it commits';

CREATE CONSTRAINT TRIGGER pending_event_publish AFTER INSERT ON nearsim_index.pending_event
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION nearsim.publish_events();
