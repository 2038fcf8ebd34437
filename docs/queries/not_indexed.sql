-- Documents that the index does not cover, and why
SELECT collection, profile, state, count(*) AS documents, min(updated_at) AS since,
    (array_agg(external_id ORDER BY updated_at, doc_id))[1:5] AS for_example
FROM nearsim.documents
WHERE state NOT IN ('indexed', 'twin')
GROUP BY collection, profile, state
ORDER BY documents DESC, collection, profile, state;
