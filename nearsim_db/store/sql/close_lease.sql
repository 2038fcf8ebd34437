-- A worker ends; what it still had is free at once. Locked in the order in which dispatchers lock it, too.
WITH held AS MATERIALIZED (
    SELECT generation_id, stage, doc_id FROM nearsim.work WHERE lease_id = %(lease_id)s
    ORDER BY generation_id, stage, doc_id FOR UPDATE
), freed AS (
    UPDATE nearsim.work SET lease_id = NULL FROM held
    WHERE work.generation_id = held.generation_id AND work.stage = held.stage AND work.doc_id = held.doc_id
)
DELETE FROM nearsim.lease WHERE lease_id = %(lease_id)s
