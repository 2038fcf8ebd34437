-- Work stays under a lease until this transaction ends; no row where it is no longer. Relies on work_pkey.
SELECT doc_id FROM nearsim.work
WHERE generation_id = {generation_id} AND stage = %(stage)s AND doc_id = %(doc_id)s AND lease_id = %(lease_id)s
FOR UPDATE
