-- The same for work that failed before or whose worker died: a few at the second attempt, later ones each alone, so that
-- what cannot be done does not take others with it. Relies on work_tried_before.
WITH alive AS (
    UPDATE nearsim.lease SET beat_at = clock_timestamp() WHERE lease_id = %(lease_id)s RETURNING lease_id
), free AS MATERIALIZED (
    SELECT ctid FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND attempts > 0
        AND attempts BETWEEN %(least)s AND %(most)s AND lease_id IS NULL
        AND set_aside_at IS NULL AND due_at <= clock_timestamp()
    ORDER BY attempts, doc_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
)
UPDATE nearsim.work SET lease_id = alive.lease_id, again = false
FROM alive
WHERE work.ctid = ANY (ARRAY(SELECT ctid FROM free))
RETURNING work.doc_id, work.reached, work.attempts
