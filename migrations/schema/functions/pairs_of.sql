-- Relies on the partitions' keys, on the index of similar_pair on right_id and on that of twins on (head_id, doc_id). Reads
-- the partitions by name: the same plan for any statistics and any number of generations.
CREATE FUNCTION nearsim.pairs_of(
    generation_id integer, doc_id bigint, min_similarity double precision, min_shared_bands integer)
RETURNS TABLE (other_id bigint, similarity double precision, estimate real, shared_bands smallint,
    intersection_size integer, union_size integer, numbers_differ boolean, distance double precision)
LANGUAGE plpgsql STABLE ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    known record;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN;
    END IF;
    SELECT nearsim.metric_of(generation.recipe) AS metric, generation.bands INTO known
    FROM nearsim.generation WHERE generation.generation_id = pairs_of.generation_id;
    RETURN QUERY EXECUTE format($query$
        WITH me AS MATERIALIZED (SELECT * FROM nearsim_index.%1$I WHERE doc_id = $1)
        SELECT family.doc_id, alike.similarity, alike.estimate, alike.shared_bands, alike.intersection_size,
            alike.union_size, family.numbers_digest <> me.numbers_digest, alike.distance
        FROM me
        CROSS JOIN LATERAL (
            SELECT right_id AS head_id, similarity, estimate, shared_bands, intersection_size, union_size, distance
            FROM nearsim_index.%2$I WHERE left_id = me.head_id
            UNION ALL
            SELECT left_id, similarity, estimate, shared_bands, intersection_size, union_size, distance
            FROM nearsim_index.%2$I WHERE right_id = me.head_id
            UNION ALL
            SELECT me.head_id, 1, 1, $4, CASE WHEN $5 = 'jaccard' THEN me.feature_count END,
                CASE WHEN $5 = 'jaccard' THEN me.feature_count END, CASE WHEN $5 = 'euclidean' THEN 0 END
            WHERE me.head_id IS NOT NULL
        ) AS alike
        CROSS JOIN LATERAL (
            SELECT doc_id, numbers_digest FROM nearsim_index.%1$I WHERE doc_id = alike.head_id
            UNION ALL
            SELECT doc_id, numbers_digest FROM nearsim_index.%1$I WHERE head_id = alike.head_id AND head_id <> doc_id
        ) AS family
        WHERE family.doc_id <> me.doc_id AND alike.similarity >= $2 AND alike.shared_bands >= $3
        $query$, 'signature_' || generation_id, 'similar_pair_' || generation_id)
        USING doc_id, min_similarity, min_shared_bands, known.bands, known.metric;
END
$$;
COMMENT ON FUNCTION nearsim.pairs_of(integer, bigint, double precision, integer) IS
    'Internal (used by similar_to): the documents paired with one in a generation, twins expanded, if the caller may read it';
