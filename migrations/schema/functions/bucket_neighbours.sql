-- Members of a head's buckets that are not paired with it. Only the first bucket_limit members of each bucket are read, so the
-- work is bounded. Members that are candidates under the recipe were compared before: they are below its threshold, whatever
-- their sketches estimate. Similarities are compared with the recipe's least similarity, because the threshold may be a
-- distance. Shared bands are compared with min_shared_bands or, if it is NULL, with the amplification. Relies on the indexes
-- that pairs_of uses.
CREATE FUNCTION nearsim.bucket_neighbours(
    generation_id integer, doc_id bigint, min_similarity double precision, min_shared_bands integer)
RETURNS TABLE (other_id bigint, estimate double precision, shared_bands smallint, numbers_differ boolean)
LANGUAGE plpgsql STABLE ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    generation_row nearsim.generation;
    asked_signature record;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN;
    END IF;
    SELECT * INTO generation_row FROM nearsim.generation WHERE generation.generation_id = bucket_neighbours.generation_id;
    EXECUTE format('SELECT * FROM %s AS own WHERE doc_id = $1', nearsim.rows_of('signature', generation_id))
        INTO asked_signature USING doc_id;
    IF asked_signature.sketch IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT twin.doc_id, compared.estimate, compared.shared_bands, twin.numbers_digest <> $11
        FROM (
            SELECT doc_id FROM unnest($1) AS member (doc_id)
            WHERE doc_id <> $8 AND NOT EXISTS (
                SELECT FROM %2$s AS stored WHERE left_id = least($8, member.doc_id) AND right_id = greatest($8, member.doc_id))
            OFFSET 0
        ) AS unpaired
        CROSS JOIN LATERAL (
            SELECT sketch FROM %1$s AS signed WHERE doc_id = unpaired.doc_id AND head_id = unpaired.doc_id
                AND nearsim.may_pair($4, signed.feature_digest, $10)
                AND least(feature_count, $13) >= greatest(feature_count, $13) * $12 LIMIT 1
        ) AS other_head
        CROSS JOIN LATERAL (
            SELECT nearsim.shared_bands($4, $5, $6, $9, other_head.sketch) AS bands OFFSET 0
        ) AS shared
        CROSS JOIN LATERAL (
            SELECT nearsim.is_candidate($4, shared.bands) AS is_candidate OFFSET 0
        ) AS relation
        CROSS JOIN LATERAL (
            SELECT CAST(cardinality(shared.bands) AS smallint) AS shared_bands,
                nearsim.estimate_under($4, $9, other_head.sketch) AS estimate
            WHERE coalesce(cardinality(shared.bands) >= $3, relation.is_candidate) AND NOT ($7 AND relation.is_candidate) OFFSET 0
        ) AS compared
        CROSS JOIN LATERAL (
            SELECT doc_id, numbers_digest FROM %3$s AS signed WHERE head_id = unpaired.doc_id OFFSET 0
        ) AS twin
        WHERE compared.estimate >= $2
        $query$, nearsim.rows_of('signature', generation_id), nearsim.rows_of('similar_pair', generation_id),
            nearsim.rows_of('signed', generation_id))
        USING nearsim.bucket_members(generation_id,
                nearsim.keys_under(generation_row.recipe, generation_row.bands, generation_row.rows, asked_signature.sketch),
                nullif(CAST(generation_row.recipe #>> '{match,bucket_limit}' AS integer), 0)),
            min_similarity, min_shared_bands, generation_row.recipe, CAST(generation_row.bands AS integer),
            CAST(generation_row.rows AS integer), min_similarity >= nearsim.least_similarity(generation_row.recipe),
            asked_signature.head_id, asked_signature.sketch, asked_signature.feature_digest,
            asked_signature.numbers_digest,
            coalesce(CAST(generation_row.recipe #>> '{match,length_ratio}' AS numeric), 0), asked_signature.feature_count;
END
$$;
COMMENT ON FUNCTION nearsim.bucket_neighbours(integer, bigint, double precision, integer) IS
    'Internal (used by similar_to): documents, twins included, that share a bucket with a document but are not paired with it, with their estimates; no rows if the caller may not read the generation';
