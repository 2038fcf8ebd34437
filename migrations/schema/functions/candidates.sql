-- The product's candidates: two heads that share a bucket in which one of them is an anchor (among the first
-- bucket_limit by doc_id), and whose shared bands satisfy the recipe. Bands are also shared in buckets in which neither
-- is an anchor: these are compared for linked pairs only, so the work is bounded by limit x rows. The generation is a
-- parameter of a statement that is planned with its value, so only its partition is planned and read. Relies on the
-- partition's index on (bucket_hash, doc_id).
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
    RETURN QUERY EXECUTE $query$
        WITH member AS MATERIALIZED (
            SELECT bucket_hash, band_no, doc_id, place FROM (
                SELECT bucket_hash, band_no, doc_id,
                    row_number() OVER in_bucket AS place, lead(doc_id) OVER in_bucket AS next_id
                FROM nearsim.band WHERE generation_id = $1
                WINDOW in_bucket AS (PARTITION BY bucket_hash ORDER BY doc_id)
            ) AS numbered
            WHERE place > 1 OR next_id IS NOT NULL
        ), linked AS (
            SELECT anchor.doc_id AS left_id, other.doc_id AS right_id, count(*) AS shared_bands,
                array_agg(anchor.band_no) FILTER (WHERE $4 #>> '{match,amplification}' IS NOT NULL) AS bands
            FROM member AS anchor JOIN member AS other USING (bucket_hash)
            WHERE anchor.doc_id < other.doc_id AND anchor.place <= $2
            GROUP BY anchor.doc_id, other.doc_id
        ), beyond AS (
            SELECT doc_id, array_agg(bucket_hash) AS buckets FROM member WHERE place > $2 GROUP BY doc_id
        )
        SELECT linked.left_id, linked.right_id, CAST(shared.bands AS smallint)
        FROM linked
        LEFT JOIN beyond AS l ON l.doc_id = linked.left_id
        LEFT JOIN beyond AS r ON r.doc_id = linked.right_id
        LEFT JOIN LATERAL (
            SELECT array_agg(CAST((bucket >> 56) & 255 AS smallint)) AS bands
            FROM unnest(l.buckets) AS bucket WHERE bucket = ANY (r.buckets)
            HAVING l.buckets && r.buckets
        ) AS more ON true
        CROSS JOIN LATERAL (SELECT linked.shared_bands + coalesce(cardinality(more.bands), 0) AS bands) AS shared
        WHERE CASE WHEN $4 #>> '{match,amplification}' IS NULL THEN shared.bands >= $3
            ELSE nearsim.is_candidate($4, linked.bands || more.bands) END
        $query$
        USING live.generation_id,
            coalesce(nullif(CAST(live.recipe #>> '{match,bucket_limit}' AS bigint), 0), 9223372036854775807),
            live.min_shared_bands, live.recipe;
END
$$;
COMMENT ON FUNCTION nearsim.candidates(text, text) IS
    'The candidates of a profile: pairs of heads whose shared bands, in buckets that link them within the bucket limit, satisfy the recipe; counted from the rows of nearsim.band. Name the collection if there are several; without a profile, default or the only one';
