-- Work went wrong: it waits, each time longer, and after the last delay it is set aside with the error. Returns what was
-- set aside. What changed meanwhile begins anew. Relies on work_pkey.
UPDATE nearsim.work SET lease_id = NULL, again = false, error = %(error)s,
    attempts = CASE WHEN again THEN 0 ELSE attempts + 1 END,
    due_at = clock_timestamp() + make_interval(
        secs => coalesce((CAST(%(delays)s AS double precision[]))[CASE WHEN again THEN 1 ELSE attempts + 1 END], 0)),
    set_aside_at = CASE
        WHEN NOT again AND attempts + 1 > cardinality(CAST(%(delays)s AS double precision[])) THEN clock_timestamp() END
WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
    AND lease_id = %(lease_id)s
RETURNING doc_id, set_aside_at IS NOT NULL
