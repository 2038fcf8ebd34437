-- Members of a head's buckets that are not paired with it: the first bucket_limit members of each bucket, so the work is
-- bounded. Members that are candidates under the recipe were compared, so they are below its threshold, whatever their sketches
-- estimate. Similarities are compared with the recipe's least similarity, as the threshold may be a distance; shared bands
-- with min_shared_bands or, if it is NULL, with the amplification. Relies on the indexes that pairs_of uses.
CREATE FUNCTION nearsim.bucket_neighbours(
    generation_id integer, doc_id bigint, min_similarity double precision, min_shared_bands integer)
RETURNS TABLE (other_id bigint, estimate double precision, shared_bands smallint, numbers_differ boolean)
LANGUAGE plpgsql STABLE ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    known nearsim.generation;
    me record;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN;
    END IF;
    SELECT * INTO known FROM nearsim.generation WHERE generation.generation_id = bucket_neighbours.generation_id;
    EXECUTE format('SELECT * FROM %s AS own WHERE doc_id = $1', nearsim.rows_of('signature', generation_id))
        INTO me USING doc_id;
    IF me.sketch IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT family.doc_id, said.estimate, said.shared_bands, family.numbers_digest <> $11
        FROM (
            SELECT doc_id FROM unnest($1) AS given (doc_id)
            WHERE doc_id <> $8 AND NOT EXISTS (
                SELECT FROM %2$s AS stored WHERE left_id = least($8, given.doc_id) AND right_id = greatest($8, given.doc_id))
            OFFSET 0
        ) AS met
        CROSS JOIN LATERAL (
            SELECT sketch FROM %1$s AS signed WHERE doc_id = met.doc_id AND head_id = met.doc_id
                AND nearsim.may_pair($4, signed.feature_digest, $10) LIMIT 1
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
            SELECT doc_id, numbers_digest FROM %3$s AS signed WHERE head_id = met.doc_id OFFSET 0
        ) AS family
        WHERE said.estimate >= $2
        $query$, nearsim.rows_of('signature', generation_id), nearsim.rows_of('similar_pair', generation_id),
            nearsim.rows_of('signed', generation_id))
        USING nearsim.bucket_members(generation_id,
                nearsim.keys_under(known.recipe, known.bands, known.rows, me.sketch),
                nullif(CAST(known.recipe #>> '{match,bucket_limit}' AS integer), 0)),
            min_similarity, min_shared_bands, known.recipe, CAST(known.bands AS integer), CAST(known.rows AS integer),
            min_similarity >= nearsim.least_similarity(known.recipe), me.head_id, me.sketch, me.feature_digest,
            me.numbers_digest;
END
$$;
COMMENT ON FUNCTION nearsim.bucket_neighbours(integer, bigint, double precision, integer) IS
    'Internal (used by similar_to): documents that share a bucket with a document but are not paired with it, with their estimates, twins expanded; only if the caller may read the generation';
