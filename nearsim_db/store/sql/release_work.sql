-- Give work back as it was taken. Relies on work_pkey.
UPDATE nearsim.work SET lease_id = NULL
WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
    AND lease_id = %(lease_id)s
