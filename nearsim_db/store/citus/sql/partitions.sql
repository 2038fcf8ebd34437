-- name: detach_leaf
-- Detach a partition; Citus has no DETACH CONCURRENTLY, so this waits for statements that read through the parent.
ALTER TABLE {parent} DETACH PARTITION {leaf}

-- name: count_generation
-- Row counts and sizes of a generation; pairs with twins expanded, as in answers. The band rows are measured on the
-- nodes; citus_total_relation_size would ask the coordinator, too. Relies on the index on head_id.
WITH family AS MATERIALIZED (
    SELECT head_id, count(*) + 1 AS members FROM {signature} AS signature WHERE head_id <> doc_id GROUP BY head_id
)
SELECT count(*), count(*) FILTER (WHERE feature_count = 0), count(*) FILTER (WHERE head_id <> doc_id),
    (SELECT coalesce(sum(coalesce(l.members, 1) * coalesce(r.members, 1)), 0)
        FROM {similar_pair} AS pair
        LEFT JOIN family AS l ON l.head_id = pair.left_id
        LEFT JOIN family AS r ON r.head_id = pair.right_id)
    + (SELECT coalesce(sum(members * (members - 1) / 2), 0) FROM family),
    (SELECT count(*) FROM {similar_pair} AS similar_pair),
    (SELECT count(DISTINCT cluster_id) FROM {cluster_member} AS cluster_member), (SELECT count(*) FROM {cluster_member} AS cluster_member),
    pg_total_relation_size(CAST(%(signature)s AS regclass)), (
        SELECT CAST(sum(CAST(result AS bigint)) AS bigint) FROM pg_catalog.run_command_on_shards(
            CAST(%(band)s AS regclass), $command$SELECT pg_catalog.pg_total_relation_size('%%s')$command$)),
    pg_total_relation_size(CAST(%(pair)s AS regclass))
FROM {signature} AS signature
