-- A worker ends; what it still had is free at once.
WITH freed AS (
    UPDATE nearsim.work SET lease_id = NULL WHERE lease_id = %(lease_id)s
)
DELETE FROM nearsim.lease WHERE lease_id = %(lease_id)s
