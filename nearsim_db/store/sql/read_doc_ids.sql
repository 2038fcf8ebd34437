-- The documents of some external ids. Relies on the unique index on (collection_id, external_id).
SELECT document.external_id, document.doc_id
FROM unnest(CAST(%(external_ids)s AS text[])) AS asked (external_id)
JOIN nearsim.document ON document.collection_id = %(collection_id)s AND document.external_id = asked.external_id
