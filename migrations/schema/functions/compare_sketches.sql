-- Two heads are linked if they share a bucket in which the first of the two is an anchor. Testing the first is enough: anchors
-- are the first members of a bucket, so the second head cannot be an anchor if the first one is not.
CREATE OR REPLACE FUNCTION nearsim.compare_sketches(generation_id integer, left_id bigint, right_id bigint)
RETURNS TABLE (are_twins boolean, estimate double precision, bands smallint[], are_linked boolean)
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
DECLARE
    generation_row nearsim.generation;
    left_signature record;
    right_signature record;
BEGIN
    IF NOT nearsim.may_see_generation(generation_id) THEN
        RETURN;
    END IF;
    SELECT * INTO generation_row FROM nearsim.generation WHERE generation.generation_id = compare_sketches.generation_id;
    EXECUTE format('SELECT * FROM %s AS own WHERE doc_id = $1', nearsim.rows_of('signature', generation_id))
        INTO left_signature USING left_id;
    EXECUTE format('SELECT * FROM %s AS own WHERE doc_id = $1', nearsim.rows_of('signature', generation_id))
        INTO right_signature USING right_id;
    IF left_signature.sketch IS NULL OR right_signature.sketch IS NULL THEN
        RETURN;
    END IF;
    are_twins := left_signature.feature_digest = right_signature.feature_digest;
    estimate := nearsim.estimate_under(generation_row.recipe, left_signature.sketch, right_signature.sketch);
    bands := nearsim.shared_bands(generation_row.recipe, generation_row.bands, generation_row.rows,
        left_signature.sketch, right_signature.sketch);
    EXECUTE format($query$
        SELECT EXISTS (
            SELECT FROM unnest($1) AS bucket (bucket_hash)
            WHERE bucket.bucket_hash = ANY ($2) AND ($4 = 0 OR $3 <= coalesce((
                SELECT doc_id FROM %s AS band WHERE bucket_hash = bucket.bucket_hash
                ORDER BY doc_id OFFSET greatest($4 - 1, 0) LIMIT 1), $3)))
        $query$, nearsim.rows_of('band', generation_id))
        INTO are_linked
        USING nearsim.keys_under(
                generation_row.recipe, generation_row.bands, generation_row.rows, left_signature.sketch),
            nearsim.keys_under(generation_row.recipe, generation_row.bands, generation_row.rows, right_signature.sketch),
            least(left_signature.head_id, right_signature.head_id),
            CAST(generation_row.recipe #>> '{match,bucket_limit}' AS integer);
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION nearsim.compare_sketches(integer, bigint, bigint) IS
    'Internal (used by why_not): compares the sketches of two documents, and reports whether they share a bucket in which one of them is an anchor; no row unless both have features and the caller may read the generation';
