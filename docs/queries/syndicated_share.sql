-- Share of each source's documents that another source published first
SELECT source, count(*) AS documents, count(syndicated.doc_id) AS syndicated,
    round(100.0 * count(syndicated.doc_id) / count(*), 1) AS percent
FROM nearsim.documents AS document
LEFT JOIN (
    SELECT generation_id, doc_id FROM nearsim.first_publications
    WHERE collection = 'demo' AND profile = 'default'  -- use your own, here and below
        AND first_elsewhere
) AS syndicated USING (generation_id, doc_id)
WHERE collection = 'demo' AND profile = 'default'
GROUP BY source
ORDER BY syndicated DESC, source
LIMIT 20;
