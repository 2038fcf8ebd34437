-- The sketches of all heads by doc_id. Relies on the leaf's key, or sorts.
SELECT doc_id, sketch FROM {signature} WHERE head_id = doc_id ORDER BY doc_id
