-- One error is written to every document of the batch that failed, and may quote any of them. Reads what failed only.
-- Relies on work_tried_before.
UPDATE nearsim.work SET error = 'the error was about a document that was purged'
WHERE generation_id = {generation_id} AND attempts > 0 AND error IN (
    SELECT error FROM nearsim.work
    WHERE generation_id = {generation_id} AND attempts > 0 AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[])))
