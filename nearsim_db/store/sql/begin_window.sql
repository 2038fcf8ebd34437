-- From here on a generation is built: what it will sign is no older than this, so no sweep has to look further back.
UPDATE nearsim.generation SET expired_through = now() - make_interval(secs => CAST(%(age)s AS double precision))
WHERE generation_id = {generation_id} AND expired_through IS NULL
