-- The work on documents goes, of the given stages and with what went wrong at it; who is storing some of it is waited
-- for. Relies on work_pkey.
DELETE FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = ANY(CAST(%(stages)s AS text[]))
    AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
