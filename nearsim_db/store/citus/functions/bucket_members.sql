-- Replaces the function for band rows on one server. The members come from the shards of their buckets, in one bounded
-- statement. Citus pushes the limit of each bucket down only if there is an outer limit, so the outer one is the largest
-- number.
CREATE OR REPLACE FUNCTION nearsim.bucket_members(generation_id integer, bucket_hashes bigint[], most integer)
RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off
SET client_min_messages = warning SET citus.subquery_pushdown = on AS $$
DECLARE
    doc_ids bigint[];
BEGIN
    IF nearsim.may_see_generation(generation_id) THEN
        EXECUTE format($query$
            WITH found AS MATERIALIZED (
                SELECT member.doc_id FROM unnest($1) AS bucket (bucket_hash)
                CROSS JOIN LATERAL (
                    SELECT doc_id FROM %s AS band WHERE bucket_hash = bucket.bucket_hash AND (bucket_hash = ANY ($1) OR bucket_hash = ($1)[1])
                    ORDER BY doc_id LIMIT $2
                ) AS member
                LIMIT 9223372036854775807
            )
            SELECT array_agg(DISTINCT doc_id) FROM found
            $query$, nearsim.rows_of('band', generation_id))
            INTO doc_ids USING bucket_hashes, most;
    END IF;
    RETURN doc_ids;
END
$$
