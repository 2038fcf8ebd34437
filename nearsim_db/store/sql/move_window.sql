-- A sweep has taken out what is older than this.
UPDATE nearsim.generation SET expired_through = %(through)s WHERE generation_id = {generation_id}
