-- Write a batch by external_id and say how many rows were new, changed and as they were; ids met before in the file
-- are left out of the counts. Documents get their doc_id in the order of the file; those given without a vector keep the
-- one they have. Relies on document_external_id_key.
WITH written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, body, source, url, published_at, attributes, vector)
    SELECT %(collection_id)s, external_id, title, body, source, url, published_at, attributes, vector
    FROM incoming ORDER BY line
    ON CONFLICT (collection_id, external_id) DO UPDATE SET
        title = excluded.title, body = excluded.body, source = excluded.source, url = excluded.url,
        published_at = excluded.published_at, attributes = excluded.attributes,
        vector = coalesce(excluded.vector, document.vector)
    WHERE (document.title, document.body, document.source, document.url, document.published_at,
           document.attributes)
        IS DISTINCT FROM (excluded.title, excluded.body, excluded.source, excluded.url,
           excluded.published_at, excluded.attributes)
        OR excluded.vector IS NOT NULL AND document.vector IS DISTINCT FROM excluded.vector
    RETURNING external_id, xmax = 0 AS is_new
), fresh AS (
    SELECT external_id FROM incoming WHERE NOT EXISTS (SELECT FROM met WHERE met.external_id = incoming.external_id)
)
SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new), count(*) FILTER (WHERE is_new IS NULL)
FROM fresh LEFT JOIN written USING (external_id)
