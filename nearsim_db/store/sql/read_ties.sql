-- What ties documents together: verified pairs, and (true) twins with their head. One row a document, what it is tied to
-- packed as eight bytes each. Relies on the keys of pairs and on the index on head_id.
SELECT left_id, false, string_agg(int8send(right_id), '') FROM {similar_pair} GROUP BY left_id
UNION ALL
SELECT head_id, true, string_agg(int8send(doc_id), '') FROM {signature} WHERE head_id <> doc_id GROUP BY head_id
