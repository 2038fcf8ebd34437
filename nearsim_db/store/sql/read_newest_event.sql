-- The number of the last event; all that have a smaller one can be seen too. Relies on event_pkey.
SELECT coalesce(max(event_id), 0) FROM nearsim.event
