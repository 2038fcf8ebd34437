-- Take the next batch of one stage, in doc_id order, until commit: a dispatcher that brings such work again meanwhile
-- waits, and then queues it anew. `after` spares a walk over what was taken just before. Relies on work_pkey.
DELETE FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = ANY (ARRAY(
    SELECT doc_id FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id > %(after)s
    ORDER BY doc_id LIMIT %(batch)s))
RETURNING doc_id
