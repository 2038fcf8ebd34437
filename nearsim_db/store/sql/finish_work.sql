-- Take documents off a stage's queue, in the transaction that stores what was done; returns those whose lease still
-- stands. What changed again meanwhile stays queued, as new. Relies on work_pkey.
WITH mine AS MATERIALIZED (
    SELECT doc_id, again FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        AND lease_id = %(lease_id)s
    ORDER BY doc_id FOR UPDATE
), done AS (
    DELETE FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s
        AND doc_id = ANY (ARRAY(SELECT doc_id FROM mine WHERE NOT again))
), kept AS (
    UPDATE nearsim.work
    SET lease_id = NULL, again = false, attempts = 0, reached = 0, error = NULL, queued_at = now(), due_at = now()
    WHERE generation_id = {generation_id} AND stage = %(stage)s
        AND doc_id = ANY (ARRAY(SELECT doc_id FROM mine WHERE again))
)
SELECT doc_id FROM mine ORDER BY doc_id
