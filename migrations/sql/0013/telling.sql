-- What the statements did to pairs, taken together: of each pair the first and the last of its drafts decide. Those that the
-- slices have not come to are told by them, as they then are; how far these are is read under the lock.
CREATE OR REPLACE FUNCTION nearsim.tell_pairs(collection_id integer, profile_id integer, generation_id integer, first_draft bigint)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    told bigint;
    through record;
BEGIN
    SELECT generation.told_left_id AS left_id, generation.told_right_id AS right_id INTO through
    FROM nearsim.generation WHERE generation.generation_id = tell_pairs.generation_id;
    INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind, left_id, right_id, similarity)
    WITH step AS (
        SELECT draft.draft_id, draft.kind = 'pairs_come' AS came, pair.left_id, pair.right_id, pair.similarity
        FROM nearsim.event_draft AS draft
        CROSS JOIN LATERAL unnest(draft.left_ids, draft.right_ids, draft.similarities)
            AS pair (left_id, right_id, similarity)
        WHERE draft.draft_id >= tell_pairs.first_draft AND draft.generation_id = tell_pairs.generation_id
            AND draft.kind IN ('pairs_gone', 'pairs_come')
            AND ((pair.left_id, pair.right_id) <= (through.left_id, through.right_id) OR through.left_id IS NULL)
    ), net AS (
        SELECT left_id, right_id, count(*) AS steps, array_agg(came ORDER BY draft_id) AS came,
            array_agg(similarity ORDER BY draft_id) AS similarity
        FROM step GROUP BY left_id, right_id
    )
    SELECT tell_pairs.collection_id, tell_pairs.profile_id, tell_pairs.generation_id,
        said.kind, net.left_id, net.right_id, CASE said.kind WHEN 'pair_found' THEN net.similarity[steps] END
    FROM net CROSS JOIN LATERAL (VALUES
        ('pair_gone', NOT came[1] AND (NOT came[steps] OR similarity[1] <> similarity[steps])),
        ('pair_found', came[steps] AND (came[1] OR similarity[1] <> similarity[steps]))
    ) AS said (kind, is_so)
    WHERE said.is_so
    ORDER BY said.kind DESC, net.left_id, net.right_id;
    GET DIAGNOSTICS told = ROW_COUNT;
    RETURN told;
END
$$;
COMMENT ON FUNCTION nearsim.tell_pairs(integer, integer, integer, bigint) IS
    'Part of tell: events of the pairs that the transaction at hand found, and of those that are gone';

-- Of each cluster that had or has a document that was touched: which former clusters its documents come from, and into
-- which the former ones went. Members that were not touched are in the cluster in which they were; whether a cluster has
-- one is seen without reading it whole, as it then has more members than came to it. Relies on the keys of
-- cluster_member and on its index on (cluster_id, is_survivor, doc_id), of which a bitmap would read a whole cluster. No
-- join but those by key is a loop, whatever the planner thinks of arrays, so that the whole is linear. Of a cluster that
-- the slices have not come to its documents are in none.
CREATE OR REPLACE FUNCTION nearsim.tell_clusters(collection_id integer, profile_id integer, generation_id integer, first_draft bigint)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_nestloop = off AS $$
DECLARE
    told bigint;
    through bigint;
BEGIN
    SELECT coalesce(told_left_id - CAST(told_right_id < 9223372036854775807 AS integer), 9223372036854775807) INTO through
    FROM nearsim.generation WHERE generation.generation_id = tell_clusters.generation_id;
    INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind, cluster_id, survivor_id, other_ids,
        other_survivor_ids)
    WITH touched AS (
        SELECT DISTINCT ON (was.doc_id) was.doc_id, was.is_survivor,
            CASE WHEN was.cluster_id <= through THEN was.cluster_id END AS cluster_id
        FROM nearsim.event_draft AS draft
        CROSS JOIN LATERAL unnest(draft.doc_ids, draft.cluster_ids, draft.survive)
            AS was (doc_id, cluster_id, is_survivor)
        WHERE draft.draft_id >= tell_clusters.first_draft AND draft.generation_id = tell_clusters.generation_id
            AND draft.kind = 'members'
        ORDER BY was.doc_id, draft.draft_id
    ), moved AS MATERIALIZED (
        SELECT touched.doc_id, touched.cluster_id AS old_id, touched.is_survivor AS survived, now_is.cluster_id AS new_id
        FROM touched LEFT JOIN LATERAL (
            SELECT member.cluster_id FROM nearsim.cluster_member AS member
            WHERE member.generation_id = tell_clusters.generation_id AND member.doc_id = touched.doc_id
                AND member.cluster_id <= through
            LIMIT 1
        ) AS now_is ON true
    ), known AS (
        SELECT cluster_id, count(*) FILTER (WHERE came) AS came FROM (
            SELECT old_id, false FROM moved WHERE old_id IS NOT NULL
            UNION ALL SELECT new_id, true FROM moved WHERE new_id IS NOT NULL
        ) AS seen (cluster_id, came) GROUP BY cluster_id
    ), kept AS MATERIALIZED (
        SELECT known.cluster_id FROM known CROSS JOIN LATERAL (
            SELECT count(*) AS members FROM (
                SELECT FROM nearsim.cluster_member AS member
                WHERE member.generation_id = tell_clusters.generation_id AND member.cluster_id = known.cluster_id
                LIMIT known.came + 1
            ) AS found
        ) AS has WHERE has.members > known.came
    ), flow AS MATERIALIZED (
        SELECT old_id, new_id FROM moved WHERE old_id IS NOT NULL AND new_id IS NOT NULL
        UNION SELECT cluster_id, cluster_id FROM kept
    ), old AS MATERIALIZED (
        SELECT had.cluster_id, coalesce(had.survivor_id, now_is.survivor_id) AS survivor_id
        FROM (
            SELECT cluster_id, max(survivor_id) AS survivor_id FROM (
                SELECT old_id, CASE WHEN survived THEN doc_id END FROM moved WHERE old_id IS NOT NULL
                UNION ALL SELECT cluster_id, NULL FROM kept
            ) AS seen (cluster_id, survivor_id) GROUP BY cluster_id
        ) AS had LEFT JOIN LATERAL (
            SELECT member.doc_id AS survivor_id FROM nearsim.cluster_member AS member
            WHERE member.generation_id = tell_clusters.generation_id AND member.cluster_id = had.cluster_id
                AND member.is_survivor LIMIT 1
        ) AS now_is ON true
    ), new AS MATERIALIZED (
        SELECT has.cluster_id, now_is.survivor_id FROM (
            SELECT new_id FROM moved WHERE new_id IS NOT NULL UNION SELECT cluster_id FROM kept
        ) AS has (cluster_id) LEFT JOIN LATERAL (
            SELECT member.doc_id AS survivor_id FROM nearsim.cluster_member AS member
            WHERE member.generation_id = tell_clusters.generation_id AND member.cluster_id = has.cluster_id
                AND member.is_survivor LIMIT 1
        ) AS now_is ON true
    ), source AS MATERIALIZED (
        SELECT new.cluster_id, new.survivor_id, count(flow.old_id) AS number,
            array_agg(flow.old_id ORDER BY flow.old_id) AS ids,
            array_agg(old.survivor_id ORDER BY flow.old_id) AS survivors
        FROM new LEFT JOIN flow ON flow.new_id = new.cluster_id LEFT JOIN old ON old.cluster_id = flow.old_id
        GROUP BY new.cluster_id, new.survivor_id
    ), target AS MATERIALIZED (
        SELECT old.cluster_id, old.survivor_id, count(flow.new_id) AS number,
            array_agg(flow.new_id ORDER BY flow.new_id) AS ids,
            array_agg(new.survivor_id ORDER BY flow.new_id) AS survivors
        FROM old LEFT JOIN flow ON flow.old_id = old.cluster_id LEFT JOIN new ON new.cluster_id = flow.new_id
        GROUP BY old.cluster_id, old.survivor_id
    ), same AS (
        SELECT source.* FROM source JOIN target ON target.cluster_id = source.ids[1]
        WHERE source.number = 1 AND target.number = 1
    ), changed AS (
        SELECT same.cluster_id, same.survivor_id FROM same JOIN (
            SELECT DISTINCT new_id FROM moved WHERE old_id IS NULL AND new_id IS NOT NULL
        ) AS grown ON grown.new_id = same.cluster_id
        UNION SELECT same.cluster_id, same.survivor_id FROM same JOIN (
            SELECT DISTINCT old_id FROM moved WHERE old_id IS NOT NULL AND new_id IS NULL
        ) AS shrunk ON shrunk.old_id = same.ids[1]
    ), said (rank, kind, cluster_id, survivor_id, ids, survivors) AS (
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
    SELECT tell_clusters.collection_id, tell_clusters.profile_id, tell_clusters.generation_id,
        said.kind, said.cluster_id, said.survivor_id, said.ids, said.survivors
    FROM said ORDER BY said.rank, said.cluster_id;
    GET DIAGNOSTICS told = ROW_COUNT;
    RETURN told;
END
$$;
COMMENT ON FUNCTION nearsim.tell_clusters(integer, integer, integer, bigint) IS
    'Part of tell: events of the clusters that the transaction at hand changed, by comparing them with what they were';

-- The next of what a generation that went live holds, in order, and how far that came. Nobody else changes how far it is,
-- or the generation's state, as its row is locked before EVENT, as by who promotes. Relies on the keys of similar_pair and
-- on the indexes of signature on (head_id, doc_id) and of cluster_member on (cluster_id, is_survivor, doc_id), of which no
-- more is read than what the pairs come to.
CREATE FUNCTION nearsim.tell_slice(generation_id integer, most bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    given record;
    last record;
BEGIN
    SELECT profile.collection_id, profile_id, told_left_id AS left_id, told_right_id AS right_id INTO given
    FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
    WHERE generation.generation_id = tell_slice.generation_id AND told_left_id IS NOT NULL
    FOR NO KEY UPDATE OF generation;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(28281, 0);
    EXECUTE format($slice$
        WITH pairs AS MATERIALIZED (
            (SELECT left_id AS first_id, right_id AS second_id, similarity
            FROM nearsim.%I WHERE (left_id, right_id) > ($4, $5) ORDER BY left_id, right_id LIMIT $6)
            UNION ALL
            (SELECT head_id, doc_id, 1
            FROM nearsim.%I WHERE head_id <> doc_id AND (head_id, doc_id) > ($4, $5) ORDER BY head_id, doc_id LIMIT $6)
            ORDER BY first_id, second_id LIMIT $6
        ), told AS (
            INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind, left_id, right_id, similarity,
                cluster_id, survivor_id)
            SELECT $1, $2, $3, CASE WHEN survivor_id IS NULL THEN 'pair_found' ELSE 'cluster_formed' END,
                CASE WHEN survivor_id IS NULL THEN first_id END, CASE WHEN survivor_id IS NULL THEN second_id END,
                similarity, CASE WHEN survivor_id IS NOT NULL THEN first_id END, survivor_id
            FROM (
                SELECT first_id, second_id, similarity, NULL AS survivor_id FROM pairs
                UNION ALL
                (SELECT cluster_id, 9223372036854775807, NULL, doc_id
                FROM nearsim.%I
                WHERE is_survivor AND (cluster_id, 9223372036854775807) > ($4, $5)
                    AND cluster_id <= (
                        SELECT CASE WHEN count(*) < $6 THEN 9223372036854775807 ELSE max(first_id) END FROM pairs)
                ORDER BY cluster_id LIMIT $6)
            ) AS next
            ORDER BY first_id, second_id LIMIT $6
            RETURNING event_id, coalesce(left_id, cluster_id) AS first_id,
                coalesce(right_id, 9223372036854775807) AS second_id
        )
        SELECT count(*) OVER () AS told, first_id, second_id FROM told ORDER BY event_id DESC LIMIT 1
        $slice$,
        'similar_pair_' || generation_id, 'signature_' || generation_id, 'cluster_member_' || generation_id)
    INTO last USING given.collection_id, given.profile_id, generation_id, given.left_id, given.right_id, most;
    IF last.told = most THEN
        UPDATE nearsim.generation SET told_left_id = last.first_id, told_right_id = last.second_id
        WHERE generation.generation_id = tell_slice.generation_id;
    ELSE
        UPDATE nearsim.generation SET told_left_id = NULL, told_right_id = NULL
        WHERE generation.generation_id = tell_slice.generation_id;
    END IF;
    IF last.told > 0 THEN
        PERFORM pg_notify('nearsim', '');
    END IF;
    RETURN coalesce(last.told = most, false);
END
$$;
COMMENT ON FUNCTION nearsim.tell_slice(integer, bigint) IS
    'Part of telling of an index that went live: tells so many pairs and clusters more of a generation that went live; whether there may be others';

-- The first draft tells all, and the others find that nothing is left. A live generation that is detached is about to be
-- dropped: what is still done to it is not told. That a generation is live or not stays so until the transaction is over:
-- who changes it takes the advisory lock TURN (28289) of the generation alone, others share it, all before EVENT.
CREATE OR REPLACE FUNCTION nearsim.tell() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    given record;
    told bigint := 0;
BEGIN
    IF NOT EXISTS (SELECT FROM nearsim.event_draft AS draft WHERE draft.draft_id = NEW.draft_id) THEN
        RETURN NULL;
    END IF;
    FOR given IN
        SELECT draft.generation_id, bool_or(draft.kind IN ('live', 'not_live')) AS is_turned
        FROM nearsim.event_draft AS draft WHERE draft.draft_id >= NEW.draft_id
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
            (array_agg(draft.kind ORDER BY draft.draft_id) FILTER (WHERE draft.kind IN ('live', 'not_live')))[1] AS turn,
            coalesce(bool_or(draft.kind IN ('pairs_gone', 'pairs_come')), false) AS changes_pairs,
            coalesce(bool_or(draft.kind = 'members'), false) AS changes_clusters,
            EXISTS (
                SELECT FROM pg_inherits
                WHERE inhrelid = to_regclass(format('nearsim.%I', 'signature_' || draft.generation_id))
                    AND NOT inhdetachpending
            ) AS is_attached
        FROM nearsim.event_draft AS draft
        LEFT JOIN nearsim.generation ON generation.generation_id = draft.generation_id
        LEFT JOIN nearsim.profile ON profile.profile_id = generation.profile_id
        WHERE draft.draft_id >= NEW.draft_id
        GROUP BY draft.generation_id, generation.state, profile.profile_id, profile.collection_id
        ORDER BY turn DESC NULLS LAST, draft.generation_id
    LOOP
        CONTINUE WHEN given.turn IS NULL AND NOT (given.is_live AND given.is_attached);
        PERFORM pg_advisory_xact_lock(28281, 0);
        IF given.turn = 'not_live' THEN
            INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind)
            VALUES (given.collection_id, given.profile_id, given.generation_id, 'generation_gone');
            told := told + 1;
        END IF;
        IF given.turn IS NOT NULL AND given.is_live THEN
            INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind)
            VALUES (given.collection_id, given.profile_id, given.generation_id, 'generation_live');
            told := told + 1;
        ELSIF given.turn IS NULL THEN
            IF given.changes_pairs THEN
                told := told
                    + nearsim.tell_pairs(given.collection_id, given.profile_id, given.generation_id, NEW.draft_id);
            END IF;
            IF given.changes_clusters THEN
                told := told
                    + nearsim.tell_clusters(given.collection_id, given.profile_id, given.generation_id, NEW.draft_id);
            END IF;
        END IF;
    END LOOP;
    DELETE FROM nearsim.event_draft AS draft WHERE draft.draft_id >= NEW.draft_id;
    IF told > 0 THEN
        PERFORM pg_notify('nearsim', '');
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.tell() IS
    'Trigger: when a transaction commits, tells as events what it has changed, taken together';

DROP FUNCTION nearsim.tell_generation(integer, integer, integer);
SELECT nearsim.grant_rights();
