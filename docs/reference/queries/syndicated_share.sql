-- Share of each source's documents that another source published first
WITH document AS (
    SELECT source, doc_id IN (
        SELECT doc_id FROM nearsim.first_publications
        WHERE collection = 'demo' AND profile = 'default'  -- use your own, here and below
            AND first_elsewhere
    ) AS is_syndicated
    FROM nearsim.documents
    WHERE collection = 'demo' AND profile = 'default'
)
SELECT source, count(*) AS documents, count(*) FILTER (WHERE is_syndicated) AS syndicated,
    round(100.0 * count(*) FILTER (WHERE is_syndicated) / count(*), 1) AS percent
FROM document
GROUP BY source
ORDER BY syndicated DESC, source
LIMIT 20;
