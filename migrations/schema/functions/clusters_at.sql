-- The connected components are found by a union-find in memory, in one pass over the pairs, whose heads are numbered. `roots`
-- has the number of a parent for each number; for a root it has 0, or -1 if the root has become a cluster. If the recipe keeps
-- documents with different numbers in their texts apart, the documents of a head count as one head for each set of numbers.
-- Like pairs_between, it reads tables by name; it reads signatures through their index by head. All joins are merge joins,
-- because the number of pairs at a threshold is unknown, and hash joins that expect too many take several times as long.
CREATE FUNCTION nearsim.clusters_at(threshold double precision, collection text DEFAULT NULL, profile text DEFAULT NULL)
RETURNS TABLE (documents bigint, pairs bigint, clusters bigint, removed bigint, is_complete boolean)
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp SET jit = off SET enable_hashjoin = off AS $$
DECLARE
    live record;
    is_distance boolean;
    least_similarity double precision;
    certain_bands integer;
    includes_all boolean;
    are_apart boolean;
    is_tie constant text := '(similarity >= $1 OR shared_bands >= $2 OR $3 AND NOT (in_review OR by_passage))';
    stored_pairs text;
    heads text;
    roots integer[];
    tie record;
    left_root integer;
    right_root integer;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(nearsim.collection_named(collection), profile);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    is_distance := nearsim.metric_of(live.recipe) = 'euclidean';
    -- NaN is larger than all other numbers.
    IF (threshold >= 0 AND (is_distance AND threshold < 'NaN' OR threshold <= 1)) IS NOT TRUE THEN
        RAISE EXCEPTION 'a threshold of % is outside %', coalesce(CAST(threshold AS text), 'null'),
            CASE WHEN is_distance THEN 'the distances, which begin at 0' ELSE '0..1' END USING ERRCODE = 'invalid_parameter_value';
    END IF;

    least_similarity := CASE WHEN is_distance THEN 1 / (1 + threshold) ELSE threshold END;
    includes_all := least_similarity <= nearsim.least_similarity(live.recipe);
    is_complete := least_similarity >= coalesce(nullif(CAST(live.recipe #>> '{match,review}' AS double precision), 0),
        nearsim.least_similarity(live.recipe));
    -- Documents that share at least this many bands are pairs at any threshold.
    certain_bands := CASE WHEN live.recipe #>> '{match,verify}' = 'bands' THEN 0
        ELSE nullif(CAST(live.recipe #>> '{match,certain_shared_bands}' AS integer), 0) END;
    are_apart := coalesce(live.recipe #>> '{cluster,numbers_differ}' = 'keep-apart', false);
    stored_pairs := nearsim.rows_of('similar_pair', live.generation_id);
    heads := format('SELECT head_id, %s AS numbers, count(*) AS members FROM %s AS signed WHERE head_id IS NOT NULL GROUP BY 1, 2',
        CASE WHEN are_apart THEN 'numbers_digest' ELSE '0' END, nearsim.rows_of('signed', live.generation_id));

    -- Twins are in one cluster at any threshold.
    EXECUTE format('SELECT coalesce(sum(members), 0), count(*) FILTER (WHERE members > 1), coalesce(sum(members - 1), 0),'
        ' array_fill(0, ARRAY[CAST(count(*) AS integer)]) FROM (%s) AS head', heads)
        INTO documents, clusters, removed, roots;
    EXECUTE format($query$
        WITH twins AS MATERIALIZED (
            SELECT head_id, count(*) AS members FROM %1$s AS signed WHERE head_id IS NOT NULL
            GROUP BY head_id HAVING count(*) > 1
        )
        SELECT coalesce(sum(coalesce(l.members, 1) * coalesce(r.members, 1)), 0)
            + (SELECT coalesce(sum(members * (members - 1) / 2), 0) FROM twins)
        FROM %2$s AS pair
        LEFT JOIN twins AS l ON l.head_id = pair.left_id
        LEFT JOIN twins AS r ON r.head_id = pair.right_id
        WHERE pair.by_passage OR %3$s
        $query$, nearsim.rows_of('signed', live.generation_id), stored_pairs, is_tie)
        INTO pairs USING least_similarity, certain_bands, includes_all;

    FOR tie IN EXECUTE format($query$
        WITH head AS MATERIALIZED (
            SELECT head_id, numbers, members > 1 AS is_cluster, CAST(row_number() OVER (ORDER BY head_id, numbers) AS integer) AS number
            FROM (%s) AS head
        )
        SELECT l.number AS left_number, r.number AS right_number, l.is_cluster AS is_left_cluster, r.is_cluster AS is_right_cluster
        FROM %s AS pair
        JOIN head AS l ON l.head_id = pair.left_id
        JOIN head AS r ON r.head_id = pair.right_id AND r.numbers = l.numbers
        WHERE %s
        $query$, heads, stored_pairs, is_tie)
        USING least_similarity, certain_bands, includes_all
    LOOP
        left_root := tie.left_number;
        WHILE roots[left_root] > 0 LOOP
            -- Halve the path to the root for later searches.
            IF roots[roots[left_root]] > 0 THEN
                roots[left_root] := roots[roots[left_root]];
            END IF;
            left_root := roots[left_root];
        END LOOP;
        right_root := tie.right_number;
        WHILE roots[right_root] > 0 LOOP
            IF roots[roots[right_root]] > 0 THEN
                roots[right_root] := roots[roots[right_root]];
            END IF;
            right_root := roots[right_root];
        END LOOP;

        IF left_root <> right_root THEN
            removed := removed + 1;
            clusters := clusters + 1
                - CAST(tie.is_left_cluster OR roots[left_root] < 0 AS integer)
                - CAST(tie.is_right_cluster OR roots[right_root] < 0 AS integer);
            roots[least(left_root, right_root)] := -1;
            roots[greatest(left_root, right_root)] := least(left_root, right_root);
        END IF;
    END LOOP;
    IF live.recipe #>> '{cluster,keep}' = 'none' THEN
        removed := removed + clusters;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION nearsim.clusters_at(double precision, text, text) IS
    'What another threshold would give, counted from the stored pairs: the number of indexed documents with features, of pairs, of clusters, and of the documents in clusters besides the one that each cluster keeps, or of all documents in clusters if cluster.keep is none. For a recipe with projection, the threshold is a distance. Clusters are connected components, whatever the cluster.linkage of the recipe; pins and vetoes do not count. is_complete is false if the threshold is below the lowest similarity that the index stores (match.review or, without it, match.threshold), because pairs are missing then. Otherwise the pairs are those that the bands of this index find. Name the collection if there are several. Without a profile, this is the profile default or the only one';
