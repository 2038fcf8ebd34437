-- The next batch of one stage, in doc_id order. Relies on work_pkey.
SELECT doc_id FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = %(stage)s
ORDER BY doc_id LIMIT %(batch)s
