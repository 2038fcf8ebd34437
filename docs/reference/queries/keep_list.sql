-- One document of every cluster, and all documents without a cluster
SELECT external_id, title, source, published_at
FROM nearsim.documents AS document
WHERE collection = 'demo' AND profile = 'default'  -- use your own
    AND NOT EXISTS (
        SELECT FROM nearsim.duplicates
        WHERE duplicates.generation_id = document.generation_id AND duplicates.doc_id = document.doc_id)
ORDER BY doc_id;
