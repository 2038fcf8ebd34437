-- A worker lives.
UPDATE nearsim.lease SET beat_at = clock_timestamp() WHERE lease_id = %(lease_id)s
