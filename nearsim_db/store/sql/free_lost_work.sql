-- What lost workers had is free again, and counts as tried: it may be what they died of. What a
-- transaction is at is left to it: it ends by itself, or the server ends it.
WITH lost AS MATERIALIZED (
    SELECT generation_id, stage, doc_id FROM nearsim.work WHERE lease_id = ANY(CAST(%(lease_ids)s AS integer[]))
    ORDER BY generation_id, stage, doc_id FOR UPDATE SKIP LOCKED
)
UPDATE nearsim.work SET lease_id = NULL,
    attempts = CASE WHEN again THEN 0 ELSE attempts + 1 END, again = false,
    error = 'the worker that was at it died or went silent'
FROM lost
WHERE work.generation_id = lost.generation_id AND work.stage = lost.stage AND work.doc_id = lost.doc_id
RETURNING work.doc_id
