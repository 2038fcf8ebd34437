-- How far sweeps have come, and up to which moment documents are outside of the window now; nothing for
-- a generation that is not worked on.
SELECT expired_through, clock_timestamp() - make_interval(secs => CAST(%(age)s AS double precision))
FROM nearsim.generation WHERE generation_id = {generation_id} AND state IN ('catching_up', 'ready', 'live', 'retired')
