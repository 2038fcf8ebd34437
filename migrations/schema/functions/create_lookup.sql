-- Creates a function for each generation with tables of its own, and one for all generations that share tables, so that
-- sessions plan its statement once. Heads are sorted by similarity; their documents are read until there are enough, without
-- documents that were deleted since they were indexed. enable_sort is off, as the planner might read and sort all of them.
-- Pairs to be reviewed are read if a similarity is given. Relies on the partitions' keys, on the index of similar_pair on
-- right_id, on the indexes of the view signed on (generation_id, head_id, doc_id), on document_pkey and on
-- verdict_one_current: the same plan for any statistics.
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
                WITH me AS MATERIALIZED (
                    SELECT own.head_id, own.feature_count, own.numbers_digest, own.sketch FROM nearsim_index.%1$I AS own
                    WHERE own.generation_id = generation AND own.doc_id = asked_id AND own.head_id IS NOT NULL
                )
                SELECT family.doc_id, family.external_id, family.title, alike.similarity, alike.estimate,
                    alike.shared_bands, alike.intersection_size, alike.union_size,
                    family.numbers_digest <> (SELECT me.numbers_digest FROM me), said.verdict,
                    is_exact OR alike.head_id = (SELECT me.head_id FROM me), alike.distance,
                    CASE WHEN alike.has_shares THEN CAST(alike.intersection_size AS double precision)
                        / (SELECT me.feature_count FROM me) END,
                    CASE WHEN alike.has_shares THEN CAST(alike.intersection_size AS double precision)
                        / (alike.intersection_size + alike.union_size - (SELECT me.feature_count FROM me)) END
                FROM (
                    SELECT pair.*, metric = 'containment'
                        AND (is_exact OR pair.head_id = (SELECT me.head_id FROM me)) AS has_shares
                    FROM (
                        SELECT stored.other_id AS head_id, stored.similarity, stored.estimate, stored.shared_bands,
                            stored.intersection_size, stored.union_size, stored.distance, stored.in_review
                        FROM nearsim_index.pair_ends AS stored
                        WHERE stored.generation_id = generation AND stored.doc_id = (SELECT me.head_id FROM me)
                        UNION ALL
                        -- Twins.
                        SELECT me.head_id, 1, 1,
                            CASE WHEN metric = 'containment' THEN CAST(least(octet_length(me.sketch) / 8 - 1, 32767) AS smallint) ELSE all_bands END,
                            CASE WHEN metric IN ('jaccard', 'containment') THEN me.feature_count END,
                            CASE WHEN metric IN ('jaccard', 'containment') THEN me.feature_count END,
                            CASE WHEN metric = 'euclidean' THEN 0 END, false
                        FROM me
                    ) AS pair
                    WHERE pair.similarity >= coalesce(least_similarity, 0) AND pair.shared_bands >= least_bands
                        AND (least_similarity IS NOT NULL OR NOT pair.in_review)
                    ORDER BY pair.similarity DESC, pair.head_id OFFSET 0
                ) AS alike
                CROSS JOIN LATERAL (
                    SELECT own.doc_id, own.numbers_digest, named.external_id, named.title
                    FROM (
                        SELECT signed.doc_id, signed.numbers_digest FROM nearsim_index.%3$I AS signed
                        WHERE signed.generation_id = generation AND signed.head_id = alike.head_id
                        ORDER BY signed.generation_id, signed.head_id, signed.doc_id
                    ) AS own
                    CROSS JOIN LATERAL (
                        SELECT document.external_id, document.title FROM nearsim.document
                        WHERE document.doc_id = own.doc_id AND document.doc_id <> asked_id
                            AND document.collection_id = home LIMIT 1
                    ) AS named
                    ORDER BY own.doc_id LIMIT most
                ) AS family
                LEFT JOIN LATERAL (
                    SELECT verdict.verdict FROM nearsim.verdict
                    WHERE verdict.left_id = least(asked_id, family.doc_id)
                        AND verdict.right_id = greatest(asked_id, family.doc_id) AND verdict.undone_at IS NULL LIMIT 1
                ) AS said ON true
                ORDER BY alike.similarity DESC, family.doc_id LIMIT most;
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
