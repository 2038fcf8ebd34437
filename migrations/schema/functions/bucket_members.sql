-- Reads at most `most` rows of each bucket. Relies on the index of band on (bucket_hash, doc_id).
CREATE OR REPLACE FUNCTION nearsim.bucket_members(generation_id integer, bucket_hashes bigint[], most integer)
RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    doc_ids bigint[];
BEGIN
    IF nearsim.may_see_generation(generation_id) THEN
        EXECUTE format($query$
            SELECT array_agg(DISTINCT member.doc_id) FROM unnest($1) AS bucket (bucket_hash)
            CROSS JOIN LATERAL (
                SELECT doc_id FROM %s AS band WHERE bucket_hash = bucket.bucket_hash ORDER BY doc_id LIMIT $2
            ) AS member
            $query$, nearsim.rows_of('band', generation_id))
            INTO doc_ids USING bucket_hashes, most;
    END IF;
    RETURN doc_ids;
END
$$;
COMMENT ON FUNCTION nearsim.bucket_members(integer, bigint[], integer) IS
    'Internal (used by bucket_neighbours): the first heads of each of the buckets, up to a limit for each bucket; NULL if the caller may not read the generation';
