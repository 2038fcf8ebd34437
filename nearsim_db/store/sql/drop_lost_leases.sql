-- Lost leases that hold no work any more; one that is locked is being renewed, or dropped by another.
WITH lost AS MATERIALIZED (
    SELECT lease_id FROM nearsim.lease
    WHERE lease_id = ANY(CAST(%(lease_ids)s AS integer[]))
        AND NOT EXISTS (SELECT FROM nearsim.work WHERE work.lease_id = lease.lease_id)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM nearsim.lease WHERE lease_id = ANY (ARRAY(SELECT lease_id FROM lost))
