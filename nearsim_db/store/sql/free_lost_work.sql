-- What lost workers had is free again, and counts as tried: it may be what they died of. Locked in the order in which
-- dispatchers lock it, too.
WITH lost AS MATERIALIZED (
    SELECT generation_id, stage, doc_id FROM nearsim.work WHERE lease_id = ANY(CAST(%(lease_ids)s AS integer[]))
    ORDER BY generation_id, stage, doc_id FOR UPDATE
)
UPDATE nearsim.work SET lease_id = NULL,
    attempts = CASE WHEN again THEN 0 ELSE attempts + 1 END, again = false,
    error = 'the worker that was at it died or went silent'
FROM lost
WHERE work.generation_id = lost.generation_id AND work.stage = lost.stage AND work.doc_id = lost.doc_id
RETURNING work.doc_id
