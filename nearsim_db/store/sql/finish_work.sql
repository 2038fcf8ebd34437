-- Take documents off a stage's queue.
DELETE FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
