-- The candidate relation over all buckets. Two heads are candidates if they share a bucket in which one of them is an anchor
-- (one of the first bucket_limit heads by doc_id), and if their shared bands satisfy the recipe. Shared buckets in which
-- neither head is an anchor count as shared bands too; they are added only to pairs that another bucket links, so the work is
-- bounded by bucket_limit x rows. Relies on index-only scans of the index on (bucket_hash, doc_id).
CREATE OR REPLACE FUNCTION nearsim.candidates(collection text DEFAULT NULL, profile text DEFAULT NULL)
RETURNS TABLE (left_id bigint, right_id bigint, shared_bands smallint)
LANGUAGE plpgsql STABLE ROWS 100000 SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    live record;
BEGIN
    SELECT * INTO live FROM nearsim.live_generation(nearsim.collection_named(collection), profile);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format($query$
        WITH bucket AS MATERIALIZED (
            SELECT bucket_hash, count(*) AS members FROM %1$s AS band GROUP BY bucket_hash HAVING count(*) > 1
        ), linked AS (
            SELECT anchor.doc_id AS left_id, other.doc_id AS right_id, count(*) AS shared_bands,
                array_agg(CAST((other.bucket_hash >> 56) & 255 AS smallint))
                    FILTER (WHERE $3 #>> '{match,amplification}' IS NOT NULL) AS bands
            FROM bucket
            JOIN %1$s AS other ON other.bucket_hash = bucket.bucket_hash
            CROSS JOIN LATERAL (
                SELECT doc_id FROM %1$s AS band WHERE bucket_hash = other.bucket_hash AND doc_id < other.doc_id
                ORDER BY doc_id LIMIT $1
            ) AS anchor
            GROUP BY anchor.doc_id, other.doc_id
        ), past_limit AS (
            SELECT other.doc_id, array_agg(bucket.bucket_hash) AS buckets
            FROM bucket
            CROSS JOIN LATERAL (
                SELECT doc_id FROM %1$s AS band WHERE bucket_hash = bucket.bucket_hash ORDER BY doc_id OFFSET $1
            ) AS other
            WHERE bucket.members > $1
            GROUP BY other.doc_id
        )
        SELECT linked.left_id, linked.right_id, CAST(shared.bands AS smallint)
        FROM linked
        LEFT JOIN past_limit AS of_left ON of_left.doc_id = linked.left_id
        LEFT JOIN past_limit AS of_right ON of_right.doc_id = linked.right_id
        LEFT JOIN LATERAL (
            SELECT array_agg(CAST((bucket >> 56) & 255 AS smallint)) AS bands
            FROM unnest(of_left.buckets) AS bucket WHERE bucket = ANY (of_right.buckets)
            HAVING of_left.buckets && of_right.buckets
        ) AS unlinked ON true
        CROSS JOIN LATERAL (SELECT linked.shared_bands + coalesce(cardinality(unlinked.bands), 0) AS bands) AS shared
        WHERE CASE WHEN $3 #>> '{match,amplification}' IS NULL THEN shared.bands >= $2
            ELSE nearsim.is_candidate($3, linked.bands || unlinked.bands) END
        $query$, nearsim.rows_of('band', live.generation_id))
        USING nullif(CAST(live.recipe #>> '{match,bucket_limit}' AS bigint), 0), live.min_shared_bands, live.recipe;
END
$$;
COMMENT ON FUNCTION nearsim.candidates(text, text) IS
    'The candidates of a profile, computed from all rows of nearsim.band: pairs of heads that a bucket links within the bucket limit, and whose shared bands satisfy the recipe. Name the collection if there are several. The profile is by default the one named default, or the only one';
