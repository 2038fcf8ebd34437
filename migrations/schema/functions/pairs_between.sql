CREATE FUNCTION nearsim.pairs_between(generation_id integer, head_ids bigint[])
RETURNS TABLE (left_id bigint, right_id bigint, similarity double precision)
LANGUAGE plpgsql STABLE ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    IF nearsim.may_see_generation(generation_id) THEN
        RETURN QUERY EXECUTE format($query$
            SELECT own.head_id, pair.right_id, pair.similarity
            FROM unnest($1) WITH ORDINALITY AS own (head_id, place)
            CROSS JOIN LATERAL (
                SELECT right_id, similarity FROM %s AS stored
                WHERE NOT in_review AND NOT by_passage AND left_id = own.head_id AND right_id = ANY ($1[own.place + 1 :]) OFFSET 0
            ) AS pair
            $query$, nearsim.rows_of('similar_pair', generation_id))
            USING head_ids;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.pairs_between(integer, bigint[]) IS
    'Internal (used by dedupe): the stored pairs between heads that are passed in ascending order; no rows if the caller may not read the generation';
