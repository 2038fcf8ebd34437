-- Finds possible duplicates, named by their places in a result set. Of the documents of one head only the first is ever kept,
-- unless one of them has a verdict. So the later documents of a head count as earlier documents of a link only if one of them
-- has a verdict.
CREATE FUNCTION nearsim.links_among(
    generation_id integer, doc_ids bigint[], head_ids bigint[], min_similarity double precision)
RETURNS TABLE (later integer, earlier integer, similarity double precision)
LANGUAGE plpgsql STABLE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY
        WITH signed AS MATERIALIZED (
            SELECT CAST(given.place AS integer) AS place, given.doc_id, given.head_id
            FROM unnest(doc_ids, head_ids) WITH ORDINALITY AS given (doc_id, head_id, place)
        ), judged AS MATERIALIZED (
            SELECT signed.doc_id AS left_id, verdict.right_id, verdict.verdict
            FROM signed CROSS JOIN LATERAL (
                SELECT standing.right_id, standing.verdict FROM nearsim.verdict AS standing
                WHERE standing.left_id = signed.doc_id AND standing.undone_at IS NULL OFFSET 0
            ) AS verdict
            WHERE verdict.right_id = ANY (doc_ids)
        ), keeper AS MATERIALIZED (
            SELECT signed.* FROM signed
            JOIN (
                SELECT head_id, min(place) AS first, bool_or(doc_id IN (
                    SELECT left_id FROM judged UNION ALL SELECT right_id FROM judged)) AS is_decided
                FROM signed GROUP BY head_id
            ) AS head USING (head_id)
            WHERE head.is_decided OR signed.place = head.first
        ), pair AS MATERIALIZED (
            SELECT * FROM nearsim.pairs_between(links_among.generation_id,
                ARRAY(SELECT DISTINCT head_id FROM signed WHERE head_id IS NOT NULL ORDER BY head_id))
        ), alike AS (
            SELECT left_id AS head_id, right_id AS other_id, pair.similarity FROM pair
            UNION ALL
            SELECT right_id, left_id, pair.similarity FROM pair
            UNION ALL
            SELECT DISTINCT head_id, head_id, CAST(1 AS double precision) FROM signed WHERE head_id IS NOT NULL
        )
        SELECT late.place, early.place, alike.similarity
        FROM keeper AS early
        JOIN alike ON alike.head_id = early.head_id
        JOIN signed AS late ON late.head_id = alike.other_id AND late.place > early.place
        LEFT JOIN judged ON judged.left_id = least(late.doc_id, early.doc_id)
            AND judged.right_id = greatest(late.doc_id, early.doc_id)
        WHERE CASE judged.verdict WHEN 'pinned' THEN true WHEN 'vetoed' THEN false
            ELSE alike.similarity >= min_similarity END
        UNION ALL
        SELECT greatest(l.place, r.place), least(l.place, r.place), NULL
        FROM judged JOIN signed AS l ON l.doc_id = judged.left_id JOIN signed AS r ON r.doc_id = judged.right_id
        WHERE judged.verdict = 'pinned';
END
$$;
COMMENT ON FUNCTION nearsim.links_among(integer, bigint[], bigint[], double precision) IS
    'Internal (used by dedupe): pairs of places in a result set whose documents may be duplicates, the later place first';
