-- Those of some documents whose texts are elsewhere are to be looked at again. Relies on document_pkey.
INSERT INTO nearsim.change (collection_id, external_id)
SELECT collection_id, external_id FROM nearsim.document
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND body_digest IS NOT NULL
