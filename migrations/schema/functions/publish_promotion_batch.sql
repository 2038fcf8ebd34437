-- Publishes the next pairs and clusters of a promoted generation in order, and stores the position: pairs, and
-- clusters as (cluster_id, largest bigint), in one order. No other session changes the position or the generation's
-- state meanwhile: its row is locked before EVENT, as in a promotion. Relies on the keys of similar_pair and on the
-- indexes of signature on (head_id, doc_id) and of cluster_member on (cluster_id, is_survivor, doc_id), of which no
-- more is read than the batch needs.
CREATE FUNCTION nearsim.publish_promotion_batch(generation_id integer, most bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    given record;
    last record;
BEGIN
    SELECT profile.collection_id, profile_id, published_left_id AS left_id, published_right_id AS right_id,
        nearsim.is_exact(recipe) AS are_exact INTO given
    FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
    WHERE generation.generation_id = publish_promotion_batch.generation_id AND published_left_id IS NOT NULL
    FOR NO KEY UPDATE OF generation;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(28281, 0);
    EXECUTE format($slice$
        WITH pairs AS MATERIALIZED (
            (SELECT left_id AS first_id, right_id AS second_id, similarity, $7 AS verified
            FROM %s AS stored WHERE NOT in_review AND (left_id, right_id) > ($4, $5) ORDER BY left_id, right_id LIMIT $6)
            UNION ALL
            (SELECT head_id, doc_id, 1, true
            FROM %s AS signed WHERE head_id <> doc_id AND (head_id, doc_id) > ($4, $5) ORDER BY head_id, doc_id LIMIT $6)
            ORDER BY first_id, second_id LIMIT $6
        ), published AS (
            INSERT INTO nearsim.event (collection_id, profile_id, generation_id, kind, left_id, right_id, similarity,
                verified, cluster_id, survivor_id)
            SELECT $1, $2, $3, CASE WHEN survivor_id IS NULL THEN 'pair_found' ELSE 'cluster_formed' END,
                CASE WHEN survivor_id IS NULL THEN first_id END, CASE WHEN survivor_id IS NULL THEN second_id END,
                similarity, verified, CASE WHEN survivor_id IS NOT NULL THEN first_id END, survivor_id
            FROM (
                SELECT first_id, second_id, similarity, verified, NULL AS survivor_id FROM pairs
                UNION ALL
                (SELECT cluster_id, 9223372036854775807, NULL, NULL, doc_id
                FROM %s AS member
                WHERE is_survivor AND (cluster_id, 9223372036854775807) > ($4, $5)
                    AND cluster_id <= (
                        SELECT CASE WHEN count(*) < $6 THEN 9223372036854775807 ELSE max(first_id) END FROM pairs)
                ORDER BY cluster_id LIMIT $6)
            ) AS next
            ORDER BY first_id, second_id LIMIT $6
            RETURNING event_id, coalesce(left_id, cluster_id) AS first_id,
                coalesce(right_id, 9223372036854775807) AS second_id
        )
        SELECT count(*) OVER () AS published, first_id, second_id FROM published ORDER BY event_id DESC LIMIT 1
        $slice$,
        nearsim.rows_of('similar_pair', generation_id), nearsim.rows_of('signature', generation_id),
        nearsim.rows_of('cluster_member', generation_id))
    INTO last USING given.collection_id, given.profile_id, generation_id, given.left_id, given.right_id, most,
        given.are_exact;
    IF last.published = most THEN
        UPDATE nearsim.generation SET published_left_id = last.first_id, published_right_id = last.second_id
        WHERE generation.generation_id = publish_promotion_batch.generation_id;
    ELSE
        UPDATE nearsim.generation SET published_left_id = NULL, published_right_id = NULL
        WHERE generation.generation_id = publish_promotion_batch.generation_id;
    END IF;
    IF last.published > 0 THEN
        PERFORM pg_notify('nearsim', '');
    END IF;
    RETURN coalesce(last.published = most, false);
END
$$;
COMMENT ON FUNCTION nearsim.publish_promotion_batch(integer, bigint) IS
    'Internal (used by promotion): publishes the next batch of a promoted generation''s pairs and clusters as events; returns whether more may follow';
