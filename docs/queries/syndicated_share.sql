-- Share of each source's documents that another source published first
SELECT source, count(*) AS documents, count(duplicate.doc_id) AS syndicated,
    round(100.0 * count(duplicate.doc_id) / count(*), 1) AS percent
FROM nearsim.documents AS document
LEFT JOIN (
    SELECT generation_id, doc_id FROM nearsim.duplicates WHERE source IS DISTINCT FROM survivor_source
) AS duplicate USING (generation_id, doc_id)
WHERE collection = 'demo' AND profile = 'default'  -- use your own
GROUP BY source
ORDER BY syndicated DESC, source
LIMIT 20;
