-- Replaces the function for band rows on one server. The linked pairs come from the shards; their shared bands are computed
-- from the sketches on the coordinator.
CREATE OR REPLACE FUNCTION nearsim.candidates(collection text DEFAULT NULL, profile text DEFAULT NULL)
RETURNS TABLE (left_id bigint, right_id bigint, shared_bands smallint)
LANGUAGE plpgsql STABLE ROWS 100000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    live record;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(nearsim.collection_named(collection), profile);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($query$
        WITH linked AS MATERIALIZED (
            SELECT anchor.doc_id AS left_id, other.doc_id AS right_id
            FROM (
                SELECT bucket_hash, array_agg(doc_id ORDER BY doc_id) AS members
                FROM %2$s AS band GROUP BY bucket_hash HAVING count(*) > 1
            ) AS bucket
            CROSS JOIN LATERAL unnest(CASE WHEN $1 = 0 THEN members ELSE members[:$1] END) AS anchor (doc_id)
            CROSS JOIN LATERAL unnest(members) AS other (doc_id)
            WHERE other.doc_id > anchor.doc_id
        )
        SELECT pair.left_id, pair.right_id, CAST(cardinality(shared.bands) AS smallint)
        FROM (SELECT DISTINCT linked.left_id, linked.right_id FROM linked) AS pair
        JOIN %1$s AS left_signature ON left_signature.doc_id = pair.left_id
        JOIN %1$s AS right_signature ON right_signature.doc_id = pair.right_id
        CROSS JOIN LATERAL (SELECT nearsim.shared_bands($4, $5, $6, left_signature.sketch, right_signature.sketch) AS bands OFFSET 0) AS shared
        WHERE CASE WHEN $4 #>> '{match,amplification}' IS NULL THEN cardinality(shared.bands) >= $3
            ELSE nearsim.is_candidate($4, shared.bands) END
        $query$, nearsim.rows_of('signature', live.generation_id), nearsim.rows_of('band', live.generation_id))
        USING CAST(live.recipe #>> '{match,bucket_limit}' AS integer), live.generation_id, live.min_shared_bands,
            live.recipe, CAST(live.bands AS integer), CAST(live.rows AS integer);
END
$$
