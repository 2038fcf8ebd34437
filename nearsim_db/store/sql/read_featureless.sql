-- The first documents that have no features, and how long their texts are in characters. Reads all signatures, and documents by
-- document_pkey.
SELECT document.external_id, document.title, document.source, coalesce(document.body_length, length(document.body), 0)
FROM (SELECT doc_id FROM {signature} WHERE feature_count = 0 ORDER BY doc_id LIMIT %(amount)s) AS empty
JOIN nearsim.document USING (doc_id)
ORDER BY doc_id
