-- name: detach_leaf
-- Detach a partition. Citus does not support DETACH CONCURRENTLY, so this waits for statements that read through the parent.
ALTER TABLE {parent} DETACH PARTITION {leaf}

-- name: measure_bands
-- The size of a table of band rows on the nodes; citus_total_relation_size would also include the coordinator.
SELECT CAST(sum(CAST(result AS bigint)) AS bigint) FROM pg_catalog.run_command_on_shards(
    CAST(%(band)s AS regclass), $command$SELECT pg_catalog.pg_total_relation_size('%%s')$command$)
