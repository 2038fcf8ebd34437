-- Creates one function for each generation that has tables of its own, and one for all generations that share tables, so that
-- a session plans the statement once. Heads are sorted by similarity; then their documents are read until there are enough,
-- leaving out documents that were deleted after they were indexed. enable_sort is off, because the planner might otherwise
-- read and sort all documents. Pairs to be reviewed are read only if a minimum similarity is passed. Relies on the partitions'
-- keys, on the index of similar_pair on right_id, on the indexes of the view signed on (generation_id, head_id, doc_id), on
-- document_pkey and on verdict_one_current; the plan is the same whatever the statistics.
CREATE FUNCTION nearsim.create_lookup(generation_id integer) RETURNS regprocedure
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $create$
DECLARE
    created regprocedure;
    own_name constant text := nearsim.leaf_of('pairs_of', generation_id);
BEGIN
    EXECUTE format($function$
        CREATE OR REPLACE FUNCTION nearsim_index.%2$I(
            generation integer, asked_id bigint, home integer, least_similarity double precision, least_bands integer,
            all_bands smallint, recipe jsonb, most integer)
        RETURNS SETOF nearsim.similar_document
        LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp
        SET jit = off SET enable_seqscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan AS $body$
        DECLARE
            metric constant text := nearsim.metric_of(recipe);
            is_exact constant boolean := nearsim.is_exact(recipe);
        BEGIN
            RETURN QUERY
                WITH asked AS MATERIALIZED (
                    SELECT own.head_id, own.feature_count, own.numbers_digest, own.sketch FROM nearsim_index.%1$I AS own
                    WHERE own.generation_id = generation AND own.doc_id = asked_id AND own.head_id IS NOT NULL
                )
                SELECT match.doc_id, match.external_id, match.title, similar_head.similarity, similar_head.estimate,
                    similar_head.shared_bands, similar_head.intersection_size, similar_head.union_size,
                    match.numbers_digest <> (SELECT asked.numbers_digest FROM asked), current.verdict,
                    is_exact OR similar_head.head_id = (SELECT asked.head_id FROM asked), similar_head.distance,
                    CASE WHEN similar_head.has_shares THEN CAST(similar_head.intersection_size AS double precision)
                        / (SELECT asked.feature_count FROM asked) END,
                    CASE WHEN similar_head.has_shares THEN CAST(similar_head.intersection_size AS double precision)
                        / (similar_head.intersection_size + similar_head.union_size - (SELECT asked.feature_count FROM asked)) END
                FROM (
                    SELECT pair.*, metric = 'containment'
                        AND (is_exact OR pair.head_id = (SELECT asked.head_id FROM asked)) AS has_shares
                    FROM (
                        SELECT stored.other_id AS head_id, stored.similarity, stored.estimate, stored.shared_bands,
                            stored.intersection_size, stored.union_size, stored.distance, stored.in_review
                        FROM nearsim_index.pair_ends AS stored
                        WHERE stored.generation_id = generation AND stored.doc_id = (SELECT asked.head_id FROM asked)
                        UNION ALL
                        -- The twins of the document, which have no stored pairs.
                        SELECT asked.head_id, 1, 1,
                            CASE WHEN metric = 'containment' THEN CAST(least(octet_length(asked.sketch) / 8 - 1, 32767) AS smallint) ELSE all_bands END,
                            CASE WHEN metric IN ('jaccard', 'containment') THEN asked.feature_count END,
                            CASE WHEN metric IN ('jaccard', 'containment') THEN asked.feature_count END,
                            CASE WHEN metric = 'euclidean' THEN 0 END, false
                        FROM asked
                    ) AS pair
                    WHERE pair.similarity >= coalesce(least_similarity, 0) AND pair.shared_bands >= least_bands
                        AND (least_similarity IS NOT NULL OR NOT pair.in_review)
                    ORDER BY pair.similarity DESC, pair.head_id OFFSET 0
                ) AS similar_head
                CROSS JOIN LATERAL (
                    SELECT own.doc_id, own.numbers_digest, named.external_id, named.title
                    FROM (
                        SELECT signed.doc_id, signed.numbers_digest FROM nearsim_index.%3$I AS signed
                        WHERE signed.generation_id = generation AND signed.head_id = similar_head.head_id
                        ORDER BY signed.generation_id, signed.head_id, signed.doc_id
                    ) AS own
                    CROSS JOIN LATERAL (
                        SELECT document.external_id, document.title FROM nearsim.document
                        WHERE document.doc_id = own.doc_id AND document.doc_id <> asked_id
                            AND document.collection_id = home LIMIT 1
                    ) AS named
                    ORDER BY own.doc_id LIMIT most
                ) AS match
                LEFT JOIN LATERAL (
                    SELECT verdict.verdict FROM nearsim.verdict
                    WHERE verdict.left_id = least(asked_id, match.doc_id)
                        AND verdict.right_id = greatest(asked_id, match.doc_id) AND verdict.undone_at IS NULL LIMIT 1
                ) AS current ON true
                ORDER BY similar_head.similarity DESC, match.doc_id LIMIT most;
        END
        $body$
        $function$, nearsim.leaf_of('signature', generation_id), own_name, nearsim.leaf_of('signed', generation_id));
    SELECT pg_proc.oid INTO STRICT created FROM pg_proc
    WHERE pronamespace = CAST('nearsim_index' AS regnamespace) AND proname = own_name;
    EXECUTE format('COMMENT ON FUNCTION %s IS %L', created,
        'Internal (used by similar_to): the pairs of a document in a generation, twins expanded');
    RETURN created;
END
$create$;
COMMENT ON FUNCTION nearsim.create_lookup(integer) IS
    'Internal (used by grant_partition_rights): creates the function that reads the pairs of one document in a generation';
