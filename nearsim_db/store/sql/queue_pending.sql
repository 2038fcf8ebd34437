-- Queue what the index does not reflect: documents without a signature of their revision, and signatures without one.
INSERT INTO nearsim.work (generation_id, doc_id, stage)
SELECT {generation_id}, coalesce(document.doc_id, signature.doc_id), 'sign'
FROM (SELECT doc_id, revision FROM nearsim.document WHERE collection_id = %(collection_id)s) AS document
FULL JOIN {signature} AS signature USING (doc_id)
WHERE document.revision IS DISTINCT FROM signature.revision
ON CONFLICT DO NOTHING
