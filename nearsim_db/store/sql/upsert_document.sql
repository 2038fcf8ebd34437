-- Write one document by external_id: its doc_id, and whether it is new (null: it was there as it is). No row
-- where somebody else wrote the same meanwhile: asked again, it is seen. Given without a vector it keeps the one it has.
-- Relies on document_external_id_key.
WITH written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, body, source, url, published_at, attributes, vector)
    VALUES (%(collection_id)s, %(external_id)s, %(title)s, %(body)s, %(source)s, %(url)s, %(published_at)s,
        CAST(%(attributes)s AS jsonb), CAST(%(vector)s AS real[]))
    ON CONFLICT (collection_id, external_id) DO UPDATE SET
        title = excluded.title, body = excluded.body, source = excluded.source, url = excluded.url,
        published_at = excluded.published_at, attributes = excluded.attributes,
        vector = coalesce(excluded.vector, document.vector)
    WHERE (document.title, document.body, document.source, document.url, document.published_at,
           document.attributes)
        IS DISTINCT FROM (excluded.title, excluded.body, excluded.source, excluded.url,
           excluded.published_at, excluded.attributes)
        OR excluded.vector IS NOT NULL AND document.vector IS DISTINCT FROM excluded.vector
    RETURNING doc_id, xmax = 0 AS is_new
)
SELECT doc_id, is_new FROM written
UNION ALL
SELECT doc_id, NULL FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s AND NOT EXISTS (SELECT FROM written)
