-- Documents that the index does not cover, and why
SELECT state, count(*) AS documents, min(updated_at) AS since,
    (array_agg(external_id ORDER BY updated_at, doc_id))[1:5] AS for_example
FROM nearsim.documents
WHERE collection = 'demo' AND profile = 'default'  -- use your own
    AND state NOT IN ('indexed', 'twin')
GROUP BY state
ORDER BY documents DESC, state;
