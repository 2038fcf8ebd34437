-- A slice of an anchor's work is done: the rest is free again, from `reached` on, or from the beginning if the anchor
-- was queued anew meanwhile. Returns nothing if the lease was lost. Relies on work_pkey.
UPDATE nearsim.work SET lease_id = NULL, again = false, attempts = 0, error = NULL,
    reached = CASE WHEN again THEN 0 ELSE %(reached)s END
WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = %(doc_id)s AND lease_id = %(lease_id)s
RETURNING doc_id
