-- The queue's length, without what was set aside, and what was set aside.
SELECT count(*) FILTER (WHERE set_aside_at IS NULL), count(*) FILTER (WHERE set_aside_at IS NOT NULL)
FROM nearsim.work WHERE generation_id = {generation_id}
