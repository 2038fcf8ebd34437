-- The queue of a generation that is given up. What others are at is skipped: waiting for it would end in deadlocks, as they
-- take several stages in orders of their own. They finish it, or it goes with the generation. Relies on work_pkey.
DELETE FROM nearsim.work
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM nearsim.work WHERE generation_id = {generation_id} FOR UPDATE SKIP LOCKED))
