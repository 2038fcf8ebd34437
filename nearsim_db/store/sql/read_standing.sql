-- How a document stands in a generation: its revision, that of its signature, how many features that has, whether it
-- waits to be signed, and whether it was set aside there. Relies on the keys; nearsim.change has none and is short.
SELECT document.revision, signature.revision, signature.feature_count,
    work.doc_id IS NOT NULL AND work.set_aside_at IS NULL
        OR EXISTS (SELECT FROM nearsim.change
            WHERE change.doc_id = document.doc_id AND stage IS NULL OR change.collection_id IS NULL
                OR change.collection_id = document.collection_id AND change.doc_id IS NULL
                    AND coalesce(change.external_id, document.external_id) = document.external_id)
        OR EXISTS (SELECT FROM nearsim.work WHERE generation_id = {generation_id} AND stage = 'compare'),
    work.set_aside_at IS NOT NULL
FROM nearsim.document
LEFT JOIN {signature} AS signature USING (doc_id)
LEFT JOIN nearsim.work ON work.generation_id = {generation_id} AND work.stage = 'sign'
    AND work.doc_id = document.doc_id
WHERE document.doc_id = %(doc_id)s
