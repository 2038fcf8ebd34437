-- The sketches of all heads, to make band rows from.
SELECT doc_id, sketch FROM {signature} WHERE head_id = doc_id
