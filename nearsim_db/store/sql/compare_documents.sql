-- What upsert_documents would do, without doing it.
SELECT count(*) FILTER (WHERE document.doc_id IS NULL),
    count(*) FILTER (WHERE document.doc_id IS NOT NULL AND differs),
    count(*) FILTER (WHERE document.doc_id IS NOT NULL AND NOT differs)
FROM incoming
LEFT JOIN nearsim.document
    ON document.collection_id = %(collection_id)s AND document.external_id = incoming.external_id
CROSS JOIN LATERAL (SELECT
    (document.title, document.body, document.source, document.url, document.published_at, document.attributes)
    IS DISTINCT FROM
    (incoming.title, incoming.body, incoming.source, incoming.url, incoming.published_at, incoming.attributes)
    OR incoming.vector IS NOT NULL AND document.vector IS DISTINCT FROM incoming.vector
    AS differs) AS comparison
WHERE NOT EXISTS (SELECT FROM met WHERE met.external_id = incoming.external_id)
