-- Work went wrong: it waits, each time longer, and after the last delay it is set aside with the error. Returns what was
-- set aside. What changed meanwhile begins anew. Locked in the order in which dispatchers lock it, too. Relies on
-- work_pkey.
WITH mine AS MATERIALIZED (
    SELECT doc_id FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        AND lease_id = %(lease_id)s
    ORDER BY doc_id FOR UPDATE
)
UPDATE nearsim.work SET lease_id = NULL, again = false, error = %(error)s,
    attempts = CASE WHEN again THEN 0 ELSE attempts + 1 END,
    due_at = clock_timestamp() + make_interval(
        secs => coalesce((CAST(%(delays)s AS double precision[]))[CASE WHEN again THEN 1 ELSE attempts + 1 END], 0)),
    set_aside_at = CASE
        WHEN NOT again AND attempts + 1 > cardinality(CAST(%(delays)s AS double precision[])) THEN clock_timestamp() END
FROM mine
WHERE work.generation_id = {generation_id} AND work.stage = %(stage)s AND work.doc_id = mine.doc_id
RETURNING work.doc_id, set_aside_at IS NOT NULL
