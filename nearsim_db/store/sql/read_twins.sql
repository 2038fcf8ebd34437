-- Heads and their twins, by external id and title.
SELECT signature.head_id, document.external_id, document.title
FROM {signature} AS signature JOIN nearsim.document USING (doc_id)
WHERE signature.head_id = ANY(CAST(%(doc_ids)s AS bigint[]))
ORDER BY document.doc_id
