-- How many documents have features, how many of them one only, how many none, and how many features heads have together: what
-- is known of the sizes of documents once all are signed. Reads the leaf once.
SELECT count(*) FILTER (WHERE feature_count > 0), count(*) FILTER (WHERE feature_count = 1),
    count(*) FILTER (WHERE feature_count = 0), coalesce(sum(feature_count) FILTER (WHERE head_id = doc_id), 0)
FROM {signature}
