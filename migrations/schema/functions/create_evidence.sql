-- Creates one function for each generation that has tables of its own, and one for all generations that share tables, so that
-- a session plans the statement once. The statement reads each table once for both documents, so that under isolation the
-- grants are checked once for each table. Relies on document_pkey, on the partitions' keys and on verdict_one_current; the
-- plan is the same whatever the statistics.
CREATE FUNCTION nearsim.create_evidence(generation_id integer) RETURNS regprocedure
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $create$
DECLARE
    created regprocedure;
    own_name constant text := nearsim.leaf_of('evidence_of', generation_id);
BEGIN
    EXECUTE format($function$
        CREATE OR REPLACE FUNCTION nearsim_index.%4$I(
            generation integer, first_id bigint, second_id bigint, profile_name text, recipe jsonb, bands smallint, rows smallint,
            threshold double precision, metric text)
        RETURNS SETOF nearsim.pair_evidence
        LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp
        SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $body$
        BEGIN
            RETURN QUERY
                WITH both_documents AS MATERIALIZED (
                    SELECT document.doc_id, document.collection_id, document.external_id, document.title,
                        own.head_id, own.feature_count, own.feature_digest, own.numbers_digest, own.sketch, member.cluster_id,
                        coalesce(own.revision < document.revision, false) AS is_behind
                    FROM nearsim.document
                    LEFT JOIN LATERAL (
                        SELECT signature.* FROM nearsim_index.%1$I AS signature
                        WHERE signature.generation_id = generation AND signature.doc_id = document.doc_id LIMIT 1
                    ) AS own ON true
                    LEFT JOIN LATERAL (
                        SELECT stored.cluster_id FROM nearsim_index.%3$I AS stored
                        WHERE stored.generation_id = generation AND stored.doc_id = document.doc_id LIMIT 1
                    ) AS member ON true
                    WHERE document.doc_id IN (first_id, second_id)
                )
                SELECT first_id, second_id, l.external_id, r.external_id, profile_name, generation,
                    twins.are_twins OR pair.left_id IS NOT NULL, twins.are_twins,
                    CASE WHEN twins.are_twins THEN 1 ELSE pair.similarity END,
                    CAST(estimated.estimate AS real),
                    CASE WHEN twins.are_twins AND metric IN ('jaccard', 'containment') THEN l.feature_count ELSE pair.intersection_size END,
                    CASE WHEN twins.are_twins AND metric IN ('jaccard', 'containment') THEN l.feature_count ELSE pair.union_size END,
                    CAST(cardinality(shared.bands) AS smallint), shared.bands, l.numbers_digest <> r.numbers_digest,
                    nearsim.numbers_missing(numbers.left_ones, numbers.right_ones),
                    nearsim.numbers_missing(numbers.right_ones, numbers.left_ones),
                    pair.verified_at, threshold, recipe, decided.verdict, decided.by, decided.why,
                    coalesce(l.cluster_id = r.cluster_id, false),
                    CASE WHEN twins.are_twins AND metric = 'euclidean' THEN 0 ELSE pair.distance END,
                    CASE WHEN twins.are_twins THEN true WHEN pair.left_id IS NOT NULL THEN nearsim.is_exact(recipe) END,
                    (SELECT place.name FROM nearsim.collection AS place WHERE place.collection_id = l.collection_id),
                    l.title, r.title, estimated.equal_positions,
                    2 * CAST(recipe #>> '{sketch,k}' AS integer) - estimated.equal_positions
                FROM both_documents AS l
                CROSS JOIN both_documents AS r
                CROSS JOIN LATERAL (
                    SELECT nearsim.shared_bands(recipe, bands, rows, l.sketch, r.sketch) AS bands OFFSET 0
                ) AS shared
                CROSS JOIN LATERAL (
                    SELECT sketches.estimate, nearsim.equal_positions(recipe, sketches.estimate) AS equal_positions
                    FROM (SELECT nearsim.estimate_under(recipe, l.sketch, r.sketch) AS estimate OFFSET 0) AS sketches
                ) AS estimated
                CROSS JOIN LATERAL (
                    SELECT coalesce(l.feature_digest = r.feature_digest AND l.sketch IS NOT NULL AND r.sketch IS NOT NULL,
                        false) AS are_twins
                ) AS twins
                LEFT JOIN LATERAL (
                    SELECT stored.* FROM nearsim_index.%2$I AS stored
                    WHERE stored.generation_id = generation AND stored.left_id = least(l.head_id, r.head_id) AND stored.right_id = greatest(l.head_id, r.head_id)
                        AND NOT stored.in_review
                    LIMIT 1
                ) AS pair ON true
                LEFT JOIN LATERAL (
                    SELECT verdict.* FROM nearsim.verdict
                    WHERE verdict.left_id = first_id AND verdict.right_id = second_id AND verdict.undone_at IS NULL LIMIT 1
                ) AS decided ON true
                -- A text that is newer than the index may have other numbers than numbers_differ compared.
                LEFT JOIN LATERAL (
                    SELECT nearsim.numbers_of(first_id, recipe) AS left_ones,
                        nearsim.numbers_of(second_id, recipe) AS right_ones
                    WHERE NOT (l.is_behind OR r.is_behind) OFFSET 0
                ) AS numbers ON true
                WHERE l.doc_id = first_id AND r.doc_id = second_id;
        END
        $body$
        $function$, nearsim.leaf_of('signature', generation_id), nearsim.leaf_of('similar_pair', generation_id),
        nearsim.leaf_of('cluster_member', generation_id), own_name);
    SELECT pg_proc.oid INTO STRICT created FROM pg_proc
    WHERE pronamespace = CAST('nearsim_index' AS regnamespace) AND proname = own_name;
    EXECUTE format('COMMENT ON FUNCTION %s IS %L', created,
        'Internal (used by why): the evidence for two documents in a generation');
    RETURN created;
END
$create$;
COMMENT ON FUNCTION nearsim.create_evidence(integer) IS
    'Internal (used by grant_partition_rights): creates the function that reads the evidence for two documents in a generation';
