-- At commit, a transaction's pending events become events. The transaction takes the advisory lock EVENT (28281), draws
-- event_ids only under this lock, and keeps the lock until its changes are visible. EVENT is the last lock that it takes:
-- after it, the transaction reads tables and inserts events, but requests no row lock and no other advisory lock. The net
-- change of a pair follows from its first and its last pending event; in a transaction that only inserts pairs, each pair has
-- one pending event. Twins have no similarity in pending events; their similarity is 1 under any recipe.
CREATE FUNCTION nearsim.publish_pair_events(collection_id integer, profile_id integer, generation_id integer, first_draft bigint)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    published bigint;
    are_exact boolean;
BEGIN
    SELECT nearsim.is_exact(generation.recipe) INTO are_exact
    FROM nearsim.generation WHERE generation.generation_id = publish_pair_events.generation_id;
    IF NOT EXISTS (
        SELECT FROM nearsim_index.pending_event AS draft
        WHERE draft.pending_id >= publish_pair_events.first_draft AND draft.generation_id = publish_pair_events.generation_id
            AND draft.kind = 'pairs_before')
    THEN
        INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind, left_id, right_id, similarity,
            verified)
        SELECT publish_pair_events.collection_id, publish_pair_events.profile_id, publish_pair_events.generation_id,
            'pair_found', pair.left_id, pair.right_id, coalesce(pair.similarity, 1),
            pair.similarity IS NULL OR are_exact
        FROM nearsim_index.pending_event AS draft
        CROSS JOIN LATERAL unnest(draft.left_ids, draft.right_ids, draft.similarities)
            AS pair (left_id, right_id, similarity)
        WHERE draft.pending_id >= publish_pair_events.first_draft AND draft.generation_id = publish_pair_events.generation_id
            AND draft.kind = 'pairs_after'
        ORDER BY pair.left_id, pair.right_id;
        GET DIAGNOSTICS published = ROW_COUNT;
        RETURN published;
    END IF;
    INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind, left_id, right_id, similarity, verified)
    WITH step AS (
        SELECT draft.pending_id, draft.kind = 'pairs_after' AS is_present, pair.left_id, pair.right_id,
            coalesce(pair.similarity, 1) AS similarity, pair.similarity IS NULL OR are_exact AS verified
        FROM nearsim_index.pending_event AS draft
        CROSS JOIN LATERAL unnest(draft.left_ids, draft.right_ids, draft.similarities)
            AS pair (left_id, right_id, similarity)
        WHERE draft.pending_id >= publish_pair_events.first_draft AND draft.generation_id = publish_pair_events.generation_id
            AND draft.kind IN ('pairs_before', 'pairs_after')
    ), change AS (
        SELECT left_id, right_id, count(*) AS steps, array_agg(is_present ORDER BY pending_id) AS is_present,
            array_agg(similarity ORDER BY pending_id) AS similarity, array_agg(verified ORDER BY pending_id) AS verified
        FROM step GROUP BY left_id, right_id
    )
    SELECT publish_pair_events.collection_id, publish_pair_events.profile_id, publish_pair_events.generation_id,
        new_event.kind, change.left_id, change.right_id, CASE new_event.kind WHEN 'pair_found' THEN change.similarity[steps] END,
        CASE new_event.kind WHEN 'pair_found' THEN change.verified[steps] END
    FROM change CROSS JOIN LATERAL (VALUES
        ('pair_gone', NOT is_present[1] AND (NOT is_present[steps] OR (similarity[1], verified[1]) <> (similarity[steps], verified[steps]))),
        ('pair_found', is_present[steps] AND (is_present[1] OR (similarity[1], verified[1]) <> (similarity[steps], verified[steps])))
    ) AS new_event (kind, happened)
    WHERE new_event.happened
    ORDER BY new_event.kind DESC, change.left_id, change.right_id;
    GET DIAGNOSTICS published = ROW_COUNT;
    RETURN published;
END
$$;
COMMENT ON FUNCTION nearsim.publish_pair_events(integer, integer, integer, bigint) IS
    'Internal (used by publish_events): inserts events for the pairs that the transaction added or removed';
