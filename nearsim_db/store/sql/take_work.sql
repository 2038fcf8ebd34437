-- Lease the next batch of one stage, in doc_id order, to a worker whose own lease still stands; what others are at is
-- skipped. Relies on work_not_tried.
WITH alive AS (
    UPDATE nearsim.lease SET beat_at = clock_timestamp() WHERE lease_id = %(lease_id)s RETURNING lease_id
), free AS MATERIALIZED (
    SELECT ctid FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND attempts = 0 AND lease_id IS NULL
        AND due_at <= clock_timestamp()
    ORDER BY doc_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
)
UPDATE nearsim.work SET lease_id = alive.lease_id, again = false
FROM alive
WHERE work.ctid = ANY (ARRAY(SELECT ctid FROM free))
RETURNING work.doc_id, work.reached, work.attempts
