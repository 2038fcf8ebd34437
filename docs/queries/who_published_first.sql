-- Which source published first, and how far behind the others were
WITH member AS (
    SELECT source, published_at,
        first_value(source) OVER story AS first_source, first_value(published_at) OVER story AS first_at
    FROM nearsim.documents
    WHERE collection = 'demo' AND profile = 'default'  -- use your own
        AND cluster_id IS NOT NULL AND published_at IS NOT NULL
    WINDOW story AS (PARTITION BY cluster_id ORDER BY published_at, doc_id)
)
SELECT first_source, source AS later_source, count(*) AS copies,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY published_at - first_at) AS median_delay
FROM member
WHERE source <> first_source
GROUP BY first_source, later_source
ORDER BY copies DESC, first_source, later_source
LIMIT 20;
