-- The documents of a generation: all, those with features, those that have an earlier twin. Relies on the indexes of the
-- signatures alone.
SELECT (SELECT count(*) FROM {signature}), (SELECT count(*) FROM {signature} WHERE feature_digest IS NOT NULL),
    (SELECT count(*) FROM {signature} WHERE head_id <> doc_id)
