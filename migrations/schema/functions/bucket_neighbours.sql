-- Members of a head's buckets that are not paired with it: the first bucket_limit members of each bucket, so the work is
-- bounded. Members that the recipe compares are below its threshold, whatever their sketches estimate. Similarities are
-- compared with the recipe's least similarity, because the threshold may be a distance; shared bands are compared with
-- min_shared_bands if that is given, otherwise with the amplification. Relies on the indexes that pairs_of uses and on the
-- index of band on (bucket_hash, doc_id).
CREATE OR REPLACE FUNCTION nearsim.bucket_neighbours(
    generation_id integer, doc_id bigint, min_similarity double precision, min_shared_bands integer)
RETURNS TABLE (other_id bigint, estimate double precision, shared_bands smallint, numbers_differ boolean)
LANGUAGE plpgsql STABLE ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    known nearsim.generation;
    are_compared boolean;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN;
    END IF;
    SELECT * INTO known FROM nearsim.generation WHERE generation.generation_id = bucket_neighbours.generation_id;
    are_compared := min_similarity >= nearsim.least_similarity(known.recipe);
    RETURN QUERY EXECUTE format($query$
        WITH me AS MATERIALIZED (
            SELECT head_id, sketch, numbers_digest, feature_digest FROM %1$s AS own WHERE doc_id = $1 AND head_id IS NOT NULL
        ), met AS MATERIALIZED (
            SELECT DISTINCT member.doc_id
            FROM me
            CROSS JOIN LATERAL unnest(nearsim.keys_under($4, $5, $6, me.sketch)) AS own (bucket_hash)
            CROSS JOIN LATERAL (
                SELECT doc_id FROM %3$s AS band WHERE bucket_hash = own.bucket_hash ORDER BY doc_id
                LIMIT nullif(CAST($4 #>> '{match,bucket_limit}' AS integer), 0)
            ) AS member
            WHERE member.doc_id <> me.head_id
                AND NOT EXISTS (SELECT FROM %2$s AS stored WHERE left_id = least(me.head_id, member.doc_id)
                    AND right_id = greatest(me.head_id, member.doc_id))
        )
        SELECT family.doc_id, said.estimate, said.shared_bands, family.numbers_digest <> me.numbers_digest
        FROM me CROSS JOIN met
        CROSS JOIN LATERAL (
            SELECT sketch FROM %1$s AS signed WHERE doc_id = met.doc_id AND head_id = met.doc_id
                AND nearsim.may_pair($4, signed.feature_digest, me.feature_digest) LIMIT 1
        ) AS other
        CROSS JOIN LATERAL (
            SELECT nearsim.shared_bands($4, $5, $6, me.sketch, other.sketch) AS bands OFFSET 0
        ) AS shared
        CROSS JOIN LATERAL (
            SELECT nearsim.is_candidate($4, shared.bands) AS meets OFFSET 0
        ) AS under
        CROSS JOIN LATERAL (
            SELECT CAST(cardinality(shared.bands) AS smallint) AS shared_bands,
                nearsim.estimate_under($4, me.sketch, other.sketch) AS estimate
            WHERE coalesce(cardinality(shared.bands) >= $3, under.meets) AND NOT ($7 AND under.meets) OFFSET 0
        ) AS said
        CROSS JOIN LATERAL (
            SELECT doc_id, numbers_digest FROM %1$s AS signed WHERE doc_id = met.doc_id
            UNION ALL
            SELECT doc_id, numbers_digest FROM %1$s AS signed WHERE head_id = met.doc_id AND head_id <> doc_id
        ) AS family
        WHERE said.estimate >= $2
        $query$, nearsim.rows_of('signature', generation_id), nearsim.rows_of('similar_pair', generation_id),
            nearsim.rows_of('band', generation_id))
        USING doc_id, min_similarity, min_shared_bands, known.recipe, CAST(known.bands AS integer),
            CAST(known.rows AS integer), are_compared;
END
$$;
COMMENT ON FUNCTION nearsim.bucket_neighbours(integer, bigint, double precision, integer) IS
    'Internal (used by similar_to): documents that share a bucket with one but are not paired with it, with their estimates, twins expanded; only if the caller may read the generation';
