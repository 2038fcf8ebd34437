-- Relies on document_pkey and verdict_one_current.
CREATE FUNCTION nearsim.similar_in_buckets(
    generation_id integer, home integer, doc_id bigint, alike double precision, min_similarity double precision,
    min_shared_bands integer, max_matches integer)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    generation_row nearsim.generation;
BEGIN
    SELECT * INTO generation_row FROM nearsim.generation WHERE generation.generation_id = similar_in_buckets.generation_id;
    RETURN QUERY
        SELECT * FROM nearsim.pairs_of(generation_row.generation_id, similar_in_buckets.doc_id, min_similarity,
            coalesce(min_shared_bands, 1))
        UNION ALL
        SELECT neighbour.other_id, named.external_id, named.title, neighbour.estimate, CAST(neighbour.estimate AS real),
            neighbour.shared_bands, NULL, NULL, neighbour.numbers_differ, current.verdict, false, NULL, NULL, NULL
        FROM nearsim.bucket_neighbours(
            generation_row.generation_id, similar_in_buckets.doc_id, similar_in_buckets.alike, min_shared_bands) AS neighbour
        CROSS JOIN LATERAL (
            SELECT document.external_id, document.title FROM nearsim.document
            WHERE document.doc_id = neighbour.other_id AND document.collection_id = home LIMIT 1
        ) AS named
        LEFT JOIN LATERAL (
            SELECT verdict.verdict FROM nearsim.verdict
            WHERE verdict.left_id = least(similar_in_buckets.doc_id, neighbour.other_id)
                AND verdict.right_id = greatest(similar_in_buckets.doc_id, neighbour.other_id) AND verdict.undone_at IS NULL
            LIMIT 1
        ) AS current ON true
        WHERE similar_in_buckets.alike < nearsim.least_similarity(generation_row.recipe)
            OR min_shared_bands < CAST(generation_row.recipe #>> '{match,min_shared_bands}' AS integer)
            OR min_shared_bands > 0 AND generation_row.recipe #>> '{match,amplification}' IS NOT NULL
        ORDER BY 4 DESC, 1 LIMIT similar_in_buckets.max_matches;
END
$$;
COMMENT ON FUNCTION nearsim.similar_in_buckets(integer, integer, bigint, double precision, double precision, integer, integer) IS
    'Internal (used by similar_to): the documents paired with a document, and other documents in its buckets that satisfy a minimum lower than the recipe''s';
