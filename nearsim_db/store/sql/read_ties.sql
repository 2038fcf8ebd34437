-- What ties documents together: verified pairs (0), twins with their head (1), and pins between signed documents (2). One
-- row a document, what it is tied to packed as eight bytes each. Relies on the keys of pairs, on the index on head_id and on
-- verdict_collection.
SELECT left_id, 0, string_agg(int8send(right_id), '') FROM {similar_pair} GROUP BY left_id
UNION ALL
SELECT head_id, 1, string_agg(int8send(doc_id), '') FROM {signature} WHERE head_id <> doc_id GROUP BY head_id
UNION ALL
SELECT left_id, 2, string_agg(int8send(right_id), '') FROM nearsim.verdict
WHERE collection_id = %(collection_id)s AND verdict = 'pinned' AND undone_at IS NULL
    AND EXISTS (SELECT FROM {signature} WHERE doc_id = left_id)
    AND EXISTS (SELECT FROM {signature} WHERE doc_id = right_id)
GROUP BY left_id
