-- Compares the clusters before and after the transaction. For each cluster that has a touched document, it finds the former
-- clusters that the documents come from; for each former cluster that had one, the clusters that its documents are in now.
-- Members that were not touched are in the same cluster as before. A cluster has such a member if it has more members than
-- moved into it; counting one more than these is enough, so a large cluster is not read as a whole. Relies on the keys of
-- cluster_member and on its index on (cluster_id, is_survivor, doc_id). A bitmap scan would read a whole cluster, and so would
-- a scan by the key if statistics have no row of the generation; the ORDER BY of a range prevents both. Only joins by key are
-- nested loops, whatever the planner estimates for arrays, so the work is linear.
CREATE FUNCTION nearsim.publish_cluster_events(collection_id integer, profile_id integer, generation_id integer, first_draft bigint)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_nestloop = off AS $$
DECLARE
    published bigint;
BEGIN
    INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind, cluster_id, survivor_id, other_ids,
        other_survivor_ids)
    WITH touched AS (
        -- Documents whose membership changed, with their membership before the transaction.
        SELECT DISTINCT ON (former_member.doc_id) former_member.doc_id, former_member.is_survivor, former_member.cluster_id
        FROM nearsim_index.pending_event AS draft
        CROSS JOIN LATERAL unnest(draft.doc_ids, draft.cluster_ids, draft.survive)
            AS former_member (doc_id, cluster_id, is_survivor)
        WHERE draft.pending_id >= publish_cluster_events.first_draft AND draft.generation_id = publish_cluster_events.generation_id
            AND draft.kind = 'members'
        ORDER BY former_member.doc_id, draft.pending_id
    ), moved AS MATERIALIZED (
        -- The same documents with their present clusters.
        SELECT touched.doc_id, touched.cluster_id AS old_id, touched.is_survivor AS survived, present.cluster_id AS new_id
        FROM touched LEFT JOIN LATERAL (
            SELECT member.cluster_id FROM nearsim.cluster_member AS member
            WHERE member.generation_id = publish_cluster_events.generation_id AND member.doc_id = touched.doc_id
            LIMIT 1
        ) AS present ON true
    ), concerned AS (
        -- Clusters that have or had a touched document, with the number of documents that moved in.
        SELECT cluster_id, count(*) FILTER (WHERE is_arrival) AS arrivals FROM (
            SELECT old_id, false FROM moved WHERE old_id IS NOT NULL
            UNION ALL SELECT new_id, true FROM moved WHERE new_id IS NOT NULL
        ) AS membership (cluster_id, is_arrival) GROUP BY cluster_id
    ), kept AS MATERIALIZED (
        -- Clusters with a member that was not touched; each of them existed before and exists now.
        SELECT concerned.cluster_id FROM concerned CROSS JOIN LATERAL (
            SELECT count(*) AS members FROM (
                SELECT FROM nearsim.cluster_member AS member
                WHERE member.generation_id = publish_cluster_events.generation_id AND member.cluster_id = concerned.cluster_id
                LIMIT concerned.arrivals + 1
            ) AS found
        ) AS counted WHERE counted.members > concerned.arrivals
    ), flow AS MATERIALIZED (
        -- Pairs of a former and a present cluster that have a document in common.
        SELECT old_id, new_id FROM moved WHERE old_id IS NOT NULL AND new_id IS NOT NULL
        UNION SELECT cluster_id, cluster_id FROM kept
    ), old AS MATERIALIZED (
        -- The former clusters with their survivors.
        SELECT former.cluster_id, coalesce(former.survivor_id, present.survivor_id) AS survivor_id
        FROM (
            SELECT cluster_id, max(survivor_id) AS survivor_id FROM (
                SELECT old_id, CASE WHEN survived THEN doc_id END FROM moved WHERE old_id IS NOT NULL
                UNION ALL SELECT cluster_id, NULL FROM kept
            ) AS membership (cluster_id, survivor_id) GROUP BY cluster_id
        ) AS former LEFT JOIN LATERAL (
            SELECT member.doc_id AS survivor_id FROM nearsim.cluster_member AS member
            WHERE member.generation_id = publish_cluster_events.generation_id AND member.cluster_id BETWEEN former.cluster_id AND former.cluster_id
                AND member.is_survivor ORDER BY member.cluster_id LIMIT 1
        ) AS present ON true
    ), new AS MATERIALIZED (
        -- The present clusters with their survivors.
        SELECT latter.cluster_id, present.survivor_id FROM (
            SELECT new_id FROM moved WHERE new_id IS NOT NULL UNION SELECT cluster_id FROM kept
        ) AS latter (cluster_id) LEFT JOIN LATERAL (
            SELECT member.doc_id AS survivor_id FROM nearsim.cluster_member AS member
            WHERE member.generation_id = publish_cluster_events.generation_id AND member.cluster_id BETWEEN latter.cluster_id AND latter.cluster_id
                AND member.is_survivor ORDER BY member.cluster_id LIMIT 1
        ) AS present ON true
    ), source AS MATERIALIZED (
        -- Each present cluster with the former ones that its documents come from.
        SELECT new.cluster_id, new.survivor_id, count(flow.old_id) AS number,
            array_agg(flow.old_id ORDER BY flow.old_id) AS ids,
            array_agg(old.survivor_id ORDER BY flow.old_id) AS survivors
        FROM new LEFT JOIN flow ON flow.new_id = new.cluster_id LEFT JOIN old ON old.cluster_id = flow.old_id
        GROUP BY new.cluster_id, new.survivor_id
    ), target AS MATERIALIZED (
        -- Each former cluster with the present ones that its documents are in.
        SELECT old.cluster_id, old.survivor_id, count(flow.new_id) AS number,
            array_agg(flow.new_id ORDER BY flow.new_id) AS ids,
            array_agg(new.survivor_id ORDER BY flow.new_id) AS survivors
        FROM old LEFT JOIN flow ON flow.old_id = old.cluster_id LEFT JOIN new ON new.cluster_id = flow.new_id
        GROUP BY old.cluster_id, old.survivor_id
    ), same AS (
        -- Present clusters that neither merged nor split.
        SELECT source.* FROM source JOIN target ON target.cluster_id = source.ids[1]
        WHERE source.number = 1 AND target.number = 1
    ), changed AS (
        SELECT same.cluster_id, same.survivor_id FROM same JOIN (
            SELECT DISTINCT new_id FROM moved WHERE old_id IS NULL AND new_id IS NOT NULL
        ) AS grown ON grown.new_id = same.cluster_id
        UNION SELECT same.cluster_id, same.survivor_id FROM same JOIN (
            SELECT DISTINCT old_id FROM moved WHERE old_id IS NOT NULL AND new_id IS NULL
        ) AS shrunk ON shrunk.old_id = same.ids[1]
    ), new_event (rank, kind, cluster_id, survivor_id, ids, survivors) AS (
        SELECT 1, 'cluster_gone', cluster_id, survivor_id, NULL, NULL FROM target WHERE number = 0
        UNION ALL SELECT 2, 'cluster_merged', cluster_id, survivor_id, ids, survivors FROM source WHERE number > 1
        UNION ALL SELECT 3, 'cluster_split', cluster_id, survivor_id, ids, survivors FROM target WHERE number > 1
        UNION ALL SELECT 4, 'cluster_renamed', cluster_id, survivor_id, ids, survivors FROM same
            WHERE cluster_id <> ids[1]
        UNION ALL SELECT 5, 'cluster_formed', cluster_id, survivor_id, NULL, NULL FROM source WHERE number = 0
        UNION ALL SELECT 6, 'survivor_changed', cluster_id, survivor_id, ids, survivors FROM same
            WHERE survivor_id IS DISTINCT FROM survivors[1]
        UNION ALL SELECT 7, 'cluster_changed', cluster_id, survivor_id, NULL, NULL FROM changed
    )
    SELECT publish_cluster_events.collection_id, publish_cluster_events.profile_id, publish_cluster_events.generation_id,
        new_event.kind, new_event.cluster_id, new_event.survivor_id, new_event.ids, new_event.survivors
    FROM new_event ORDER BY new_event.rank, new_event.cluster_id;
    GET DIAGNOSTICS published = ROW_COUNT;
    RETURN published;
END
$$;
COMMENT ON FUNCTION nearsim.publish_cluster_events(integer, integer, integer, bigint) IS
    'Internal (used by publish_events): inserts events for the clusters that the transaction changed';
