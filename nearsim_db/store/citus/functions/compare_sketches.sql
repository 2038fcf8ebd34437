-- Replaces the function for band rows on one server. The last anchors of shared buckets come from the shards, in one bounded
-- statement. Citus pushes the limit of each bucket down only if there is an outer limit, so the outer one is the largest
-- number.
CREATE OR REPLACE FUNCTION nearsim.compare_sketches(generation_id integer, left_id bigint, right_id bigint)
RETURNS TABLE (are_twins boolean, estimate double precision, bands smallint[], are_linked boolean)
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET client_min_messages = warning
SET citus.subquery_pushdown = on AS $$
DECLARE
    generation_row nearsim.generation;
    left_signature record;
    right_signature record;
    shared bigint[];
    anchors bigint;
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
    anchors := CAST(generation_row.recipe #>> '{match,bucket_limit}' AS bigint);
    shared := ARRAY(
        SELECT unnest(nearsim.keys_under(
            generation_row.recipe, generation_row.bands, generation_row.rows, left_signature.sketch))
        INTERSECT
        SELECT unnest(nearsim.keys_under(
            generation_row.recipe, generation_row.bands, generation_row.rows, right_signature.sketch)));
    are_linked := cardinality(shared) > 0;
    IF are_linked AND anchors > 0 THEN
        EXECUTE format($query$
            WITH hot AS MATERIALIZED (
                SELECT found.last_anchor FROM unnest($1) AS bucket (bucket_hash)
                CROSS JOIN LATERAL (
                    SELECT bucket_hash, max(doc_id) AS last_anchor FROM (
                        SELECT bucket_hash, doc_id FROM %s AS band WHERE bucket_hash = bucket.bucket_hash AND (bucket_hash = ANY ($1) OR bucket_hash = ($1)[1])
                        ORDER BY doc_id LIMIT $2
                    ) AS anchor
                    GROUP BY bucket_hash HAVING count(*) >= $2
                ) AS found
                LIMIT 9223372036854775807
            )
            SELECT count(*) < cardinality($1) OR bool_or($3 <= last_anchor) FROM hot
            $query$, nearsim.rows_of('band', generation_id))
            INTO are_linked USING shared, anchors, least(left_signature.head_id, right_signature.head_id);
    END IF;
    RETURN NEXT;
END
$$
