-- Probes whose deadline is long over go, with their answers; one that is locked is being answered late, or dropped by
-- another. Relies on probe_age.
WITH old AS MATERIALIZED (
    SELECT probe_id FROM nearsim.probe WHERE deadline < now() - make_interval(secs => %(seconds)s)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM nearsim.probe WHERE probe_id = ANY (ARRAY(SELECT probe_id FROM old))
