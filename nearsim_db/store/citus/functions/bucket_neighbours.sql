-- Replaces the function of one server: the first bucket_limit members of the head's buckets come from their shards in one
-- bounded statement; the outer limit, which pushing down the limit in each bucket needs, is none.
CREATE OR REPLACE FUNCTION nearsim.bucket_neighbours(
    generation_id integer, doc_id bigint, min_similarity double precision, min_shared_bands integer)
RETURNS TABLE (other_id bigint, estimate double precision, shared_bands smallint, numbers_differ boolean)
LANGUAGE plpgsql STABLE ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET client_min_messages = warning
SET citus.subquery_pushdown = on AS $$
DECLARE
    known nearsim.generation;
    me record;
    met bigint[];
    are_compared boolean;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN;
    END IF;
    SELECT * INTO known FROM nearsim.generation WHERE generation.generation_id = bucket_neighbours.generation_id;
    are_compared := min_similarity >= nearsim.least_similarity(known.recipe);
    EXECUTE format('SELECT head_id, sketch, numbers_digest, feature_digest FROM %s AS own WHERE doc_id = $1 AND head_id IS NOT NULL',
        nearsim.rows_of('signature', generation_id)) INTO me USING doc_id;
    IF me.sketch IS NULL THEN
        RETURN;
    END IF;
    EXECUTE format($query$
        WITH found AS MATERIALIZED (
            SELECT member.doc_id FROM unnest($1) AS own (bucket_hash)
            CROSS JOIN LATERAL (
                SELECT doc_id FROM %s AS band WHERE bucket_hash = own.bucket_hash AND (bucket_hash = ANY ($1) OR bucket_hash = ($1)[1])
                ORDER BY doc_id LIMIT $2
            ) AS member
            LIMIT 9223372036854775807
        )
        SELECT array_agg(DISTINCT doc_id) FROM found
        $query$, nearsim.rows_of('band', generation_id))
        INTO met USING nearsim.keys_under(known.recipe, CAST(known.bands AS integer), CAST(known.rows AS integer), me.sketch),
            nullif(CAST(known.recipe #>> '{match,bucket_limit}' AS integer), 0);
    RETURN QUERY EXECUTE format($query$
        SELECT family.doc_id, said.estimate, said.shared_bands, family.numbers_digest <> $8
        FROM unnest($1) AS met (doc_id)
        CROSS JOIN LATERAL (
            SELECT sketch FROM %1$s AS signed WHERE doc_id = met.doc_id AND head_id = met.doc_id
                AND nearsim.may_pair($4, signed.feature_digest, $11) LIMIT 1
        ) AS other
        CROSS JOIN LATERAL (
            SELECT nearsim.shared_bands($4, $5, $6, $9, other.sketch) AS bands OFFSET 0
        ) AS shared
        CROSS JOIN LATERAL (
            SELECT nearsim.is_candidate($4, shared.bands) AS meets OFFSET 0
        ) AS under
        CROSS JOIN LATERAL (
            SELECT CAST(cardinality(shared.bands) AS smallint) AS shared_bands,
                nearsim.estimate_under($4, $9, other.sketch) AS estimate
            WHERE coalesce(cardinality(shared.bands) >= $3, under.meets) AND NOT ($7 AND under.meets) OFFSET 0
        ) AS said
        CROSS JOIN LATERAL (
            SELECT doc_id, numbers_digest FROM %1$s AS signed WHERE doc_id = met.doc_id
            UNION ALL
            SELECT doc_id, numbers_digest FROM %1$s AS signed WHERE head_id = met.doc_id AND head_id <> doc_id
        ) AS family
        WHERE said.estimate >= $2 AND met.doc_id <> $10
            AND NOT EXISTS (SELECT FROM %2$s AS stored WHERE left_id = least($10, met.doc_id)
                AND right_id = greatest($10, met.doc_id))
        $query$, nearsim.rows_of('signature', generation_id), nearsim.rows_of('similar_pair', generation_id))
        USING met, min_similarity, min_shared_bands, known.recipe, CAST(known.bands AS integer),
            CAST(known.rows AS integer), are_compared, me.numbers_digest, me.sketch, me.head_id, me.feature_digest;
END
$$
