-- What was decided about documents goes, with the reasons; returns whether it was a veto. Relies on verdict_left and
-- verdict_right.
DELETE FROM nearsim.verdict
WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))
RETURNING verdict = 'vetoed'
