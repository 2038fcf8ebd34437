-- Make the documents of a collection what rows of the table are that it follows, where they differ: how many were new, and
-- how many were changed. Relies on document_external_id_key.
WITH there AS MATERIALIZED (
    {rows}
), differing AS (
    SELECT there.* FROM there
    LEFT JOIN nearsim.document AS stored
        ON stored.collection_id = %(collection_id)s AND stored.external_id = there.external_id
    WHERE octet_length(there.external_id) BETWEEN 1 AND 1024
        AND (stored.doc_id IS NULL OR stored.body IS NOT NULL
            OR (stored.title, stored.source, stored.url, stored.published_at, stored.body_digest)
            IS DISTINCT FROM (there.title, there.source, there.url, there.published_at, there.body_digest))
), written AS (
    INSERT INTO nearsim.document
        (collection_id, external_id, title, source, url, published_at, body_digest, body_length)
    SELECT %(collection_id)s, external_id, title, source, url, published_at, body_digest, body_length
    FROM differing ORDER BY place
    ON CONFLICT (collection_id, external_id) DO UPDATE SET
        title = excluded.title, source = excluded.source, url = excluded.url, published_at = excluded.published_at,
        body = NULL, body_digest = excluded.body_digest, body_length = excluded.body_length
    RETURNING xmax = 0 AS is_new
)
SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new) FROM written
