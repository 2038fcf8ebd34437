-- The whole table is to be swept. Who sweeps already began before this moment, so there will be another.
UPDATE nearsim.attachment SET wanted_at = clock_timestamp() WHERE collection_id = %(collection_id)s
