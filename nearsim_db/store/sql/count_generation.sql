-- What a generation holds.
SELECT count(*), count(*) FILTER (WHERE feature_count = 0), count(*) FILTER (WHERE head_id <> doc_id),
    (SELECT count(*) FROM {similar_pair}),
    (SELECT count(DISTINCT cluster_id) FROM {cluster_member}), (SELECT count(*) FROM {cluster_member}),
    pg_total_relation_size(%(signature)s), pg_total_relation_size(%(band)s), pg_total_relation_size(%(pair)s)
FROM {signature}
