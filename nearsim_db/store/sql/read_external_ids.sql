-- The owner's names of some documents. Relies on document_pkey.
SELECT doc_id, external_id FROM nearsim.document WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
