-- The queue's length.
SELECT count(*) FROM nearsim.work WHERE generation_id = {generation_id}
