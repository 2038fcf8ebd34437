-- The documents whose features have some digests, by external id and title, and the place of their digest from 1. The same plan with any
-- statistics. Relies on the index on (feature_digest, doc_id) and document_pkey.
SELECT query.place, twin.doc_id, named.external_id, named.title
FROM unnest(CAST(%(digests)s AS uuid[])) WITH ORDINALITY AS query (digest, place)
CROSS JOIN LATERAL (
    SELECT doc_id FROM {signature} WHERE feature_digest = query.digest ORDER BY doc_id OFFSET 0
) AS twin
CROSS JOIN LATERAL (
    SELECT external_id, title FROM nearsim.document WHERE doc_id = twin.doc_id LIMIT 1
) AS named
ORDER BY twin.doc_id
