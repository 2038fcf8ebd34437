-- Whether work of one stage that was queued before a moment is still to be done or being done. What failed and waits for
-- another attempt later does not count; what was put off for a moment, because its text was being changed, does. Relies on
-- work_pkey.
SELECT EXISTS (
    SELECT FROM nearsim.work
    WHERE generation_id = {generation_id} AND stage = %(stage)s AND queued_at <= %(before)s
        AND set_aside_at IS NULL AND (lease_id IS NOT NULL OR attempts = 0 OR due_at <= clock_timestamp()))
