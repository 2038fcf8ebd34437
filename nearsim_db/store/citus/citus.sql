-- name: find_citus
-- The version of the extension in this database; NULL if it is not installed. Reads only the catalog.
SELECT (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'citus')

-- name: list_nodes
-- The nodes of the cluster on which shards may be placed: host, port, and whether they are active. Reads only the catalog.
SELECT nodename, nodeport, isactive FROM pg_catalog.pg_dist_node
WHERE noderole = 'primary' AND shouldhaveshards ORDER BY nodename, nodeport

-- name: is_coordinator
-- Whether this server is the coordinator of the cluster. Reads only the catalog.
SELECT pg_catalog.citus_is_coordinator()

-- name: is_distributed
-- Whether new generations are distributed. Reads only the catalog.
SELECT pg_catalog.pg_get_expr(adbin, adrelid) = 'true' FROM pg_catalog.pg_attrdef
JOIN pg_catalog.pg_attribute ON attrelid = adrelid AND attnum = adnum
WHERE adrelid = CAST('nearsim.generation' AS regclass) AND attname = 'distributed'

-- name: list_local_generations
-- Generations whose band rows are on this server.
SELECT generation_id FROM nearsim.generation WHERE NOT distributed ORDER BY generation_id

-- name: drop_band_policy
-- Drop the policy for band rows on this server: policies on distributed tables cannot have subqueries.
DROP POLICY granted ON {table}

-- name: create_closed_policy
-- Create a policy in place of the policy that drop_band_policy drops. Under it, nobody can read band rows under isolation.
CREATE POLICY granted ON {table} FOR SELECT USING (false)

-- name: keep_from_nodes
-- Until the transaction ends, send the nodes only what is needed to distribute a table. Otherwise objects would be sent with
-- everything that they refer to, including roles, which only a superuser may change.
SET LOCAL citus.enable_ddl_propagation = off

-- name: join_owners_on_nodes
-- Make the current user a member of nearsim_admin, which owns the band rows, on the nodes as on this server. This is
-- necessary because Citus passes a membership on only if it already knows the member. Returns each node that refuses, with
-- the reason. Runs one command on each node, which reads only the catalog.
SELECT nodename || ':' || nodeport, result
FROM pg_catalog.pg_roles AS caller CROSS JOIN LATERAL pg_catalog.run_command_on_workers(
    CASE WHEN caller.rolname IS NOT NULL THEN $command$
        DO $$
        BEGIN
            IF NOT pg_has_role('nearsim_admin', 'USAGE') THEN
                GRANT nearsim_admin TO CURRENT_USER;
            END IF;
        END $$
    $command$ END)
WHERE caller.rolname = current_user AND NOT caller.rolsuper AND NOT success AND EXISTS (
    SELECT FROM pg_catalog.pg_class JOIN pg_catalog.pg_roles AS owner ON owner.oid = relowner
    WHERE pg_class.oid = CAST('nearsim.band' AS regclass) AND owner.rolname = 'nearsim_admin')

-- name: distribute_bands
-- Distribute the parent of the band tables; attached leaves are distributed with it. All rows of a bucket are on one shard.
SELECT pg_catalog.create_distributed_table('nearsim.band', 'bucket_hash', colocate_with => 'none')

-- name: set_shard_count
-- Until the transaction ends, create `per_node` shards for each node, unless citus.shard_count is set. Reads only the
-- catalog.
SELECT set_config('citus.shard_count', CAST(%(per_node)s * count(*) AS text), true)
FROM pg_catalog.pg_dist_node JOIN pg_catalog.pg_settings ON name = 'citus.shard_count' AND source = 'default'
WHERE noderole = 'primary' AND shouldhaveshards HAVING count(*) > 0

-- name: distribute_band_leaf
-- Distribute an empty leaf like its parent, so that attaching it moves no rows.
SELECT pg_catalog.create_distributed_table(CAST(%(leaf)s AS regclass), 'bucket_hash', colocate_with => 'nearsim.band')

-- name: set_distributed
-- Let new generations be distributed.
ALTER TABLE nearsim.generation ALTER COLUMN distributed SET DEFAULT true

-- name: set_local
-- Keep the band rows of all generations on this server.
ALTER TABLE nearsim.generation ALTER COLUMN distributed SET DEFAULT false;
UPDATE nearsim.generation SET distributed = false WHERE distributed

-- name: has_shards
-- Whether a table exists and is distributed. Reads only the catalog.
SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = pg_catalog.to_regclass(%(table)s))

-- name: list_local_leaves
-- Generations whose band table exists and is not distributed. Reads all generations.
SELECT generation_id
FROM nearsim.generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
JOIN pg_catalog.pg_class ON pg_class.oid = pg_catalog.to_regclass('nearsim_index.band_' || generation_id)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = pg_class.oid)
ORDER BY generation_id

-- name: list_band_leaves
-- Generations whose band table exists. Reads all generations.
SELECT generation_id FROM nearsim.generation
WHERE pg_catalog.to_regclass('nearsim_index.band_' || generation_id) IS NOT NULL ORDER BY generation_id

-- name: grant_leaf_rights
-- Set the policies and privileges of a generation's own tables.
SELECT nearsim.grant_partition_rights({generation_id})

-- name: truncate_local_rows
-- Drop the rows that a distributed table and its partitions had on this server before. Nothing reads them any more.
SELECT pg_catalog.truncate_local_data_after_distributing_table(CAST(%(table)s AS regclass))

-- name: find_isolation
-- Whether isolation keeps collections apart. Reads only the catalog.
SELECT nearsim.is_isolated()

-- name: measure_nodes
-- Each node on which shards may be placed: host, port, whether it answers, and the fields of NodeState as JSON, or why it
-- does not answer. Runs one command on each node, which reads only the catalog.
SELECT nodename, nodeport, success, result FROM pg_catalog.run_command_on_workers($command$
    SELECT json_build_object('shards', count(*), 'bytes', coalesce(sum(pg_total_relation_size(oid)), 0),
        'rows', CAST(coalesce(sum(greatest(reltuples, 0)), 0) AS bigint),
        'prepared_transactions', CAST(current_setting('max_prepared_transactions') AS integer),
        'connections', CAST(current_setting('max_connections') AS integer), 'wal_level', current_setting('wal_level'))
    FROM pg_catalog.pg_class
    WHERE relkind = 'r' AND relnamespace = to_regnamespace('nearsim_index') AND relname ~ '^band_([0-9]+|shared)_[0-9]+$'
    $command$)
ORDER BY nodename, nodeport

-- name: ask_nodes
-- The result of a command on each node: host, port, whether it answers, and the result.
SELECT nodename, nodeport, success, result FROM pg_catalog.run_command_on_workers(%(command)s)

-- name: reach_nodes
-- Connect to each node; fails with the reason if a node refuses. Reads at most one row of each shard.
SELECT FROM nearsim.band LIMIT 1

-- name: list_members
-- The commands that would create the roles of this server and their memberships in roles of nearsim; comparing the commands
-- compares two servers. Returns a JSON array of pairs: whether the role is a role of nearsim or may read, and the command.
-- Superusers are left out. Reads only the catalog.
SELECT json_agg(json_build_array(
    rolname IN ('nearsim_admin', 'nearsim_writer', 'nearsim_reader')
        OR rolcanlogin AND pg_has_role(role.oid, to_regrole('nearsim_reader'), 'USAGE') IS TRUE, command)
    ORDER BY position, command)
FROM pg_catalog.pg_roles AS role
CROSS JOIN LATERAL (VALUES
    (1, 'CREATE ROLE ' || quote_ident(rolname) || CASE WHEN rolname ~ '^nearsim_' THEN '' ELSE ' LOGIN' END),
    (2, (SELECT 'GRANT ' || granted || ' TO ' || quote_ident(rolname)
        FROM unnest(ARRAY['nearsim_admin', 'nearsim_writer', 'nearsim_reader']) WITH ORDINALITY AS ours (granted, place)
        WHERE granted <> rolname AND pg_has_role(role.oid, to_regrole(granted), 'USAGE') ORDER BY place LIMIT 1))
) AS needed (position, command)
WHERE command IS NOT NULL AND NOT rolsuper AND (rolcanlogin OR rolname ~ '^nearsim_')

-- name: propagate_settings
-- Let SET LOCAL apply on the nodes, too, until the transaction ends.
SET LOCAL citus.propagate_set_commands = 'local'

-- name: read_shards
-- Each shard of a distributed table with its node, whether the node answers, and the fields of ShardState as JSON, or why
-- the node does not answer; the JSON is empty if the shard is missing. Runs one command for each shard, which reads only the
-- catalog.
SELECT shardid, nodename || ':' || nodeport, success, result
FROM pg_catalog.run_command_on_shards(CAST(%(table)s AS regclass), $command$
    WITH shard_index AS (
        SELECT indisvalid AND indisready AND indislive AS is_usable, (
            SELECT string_agg(attname, ', ' ORDER BY place)
            FROM unnest(CAST(indkey AS smallint[])) WITH ORDINALITY AS k (attnum, place)
            JOIN pg_catalog.pg_attribute ON attrelid = indrelid AND pg_attribute.attnum = k.attnum) AS columns
        FROM pg_catalog.pg_index WHERE indrelid = pg_catalog.to_regclass('%%1$s')
    )
    SELECT json_build_object('is_logged', relpersistence = 'p',
        'indexes', ARRAY(SELECT columns FROM shard_index WHERE is_usable),
        'unusable', ARRAY(SELECT columns FROM shard_index WHERE NOT is_usable))
    FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('%%1$s')
    $command$)
JOIN pg_catalog.pg_dist_shard_placement USING (shardid)
ORDER BY shardid

-- name: restore_shards
-- Create the missing shards of a leaf, without rows and indexes, because Citus cannot detach the leaf without them. Returns
-- the node of each shard that cannot be created, and the reason. Runs one command for each shard; locks no existing table.
SELECT nodename || ':' || nodeport, result
FROM pg_catalog.run_command_on_colocated_placements('nearsim.band', CAST(%(leaf)s AS regclass), $command$
    CREATE TABLE IF NOT EXISTS %%2$s PARTITION OF %%1$s FOR VALUES FROM ({generation_id}) TO ({generation_id} + 1)
    $command$)
WHERE NOT success

-- name: restore_shared_shards
-- Create the missing shards, without rows, and the missing indexes of the table that small generations share; returns the
-- same columns as restore_shards. Runs one command for each shard.
SELECT nodename || ':' || nodeport, result
FROM pg_catalog.run_command_on_colocated_placements('nearsim.band', 'nearsim_index.band_shared', $command$
    CREATE TABLE IF NOT EXISTS %2$s PARTITION OF %1$s FOR VALUES FROM (MINVALUE) TO (100000000);
    DO $$
    DECLARE
        index_name constant text := replace('%2$s', 'nearsim_index.band_shared', 'band_shared_bucket');
    BEGIN
        IF to_regclass('nearsim_index.' || index_name) IS NULL THEN
            EXECUTE 'CREATE UNIQUE INDEX ' || index_name || ' ON %2$s (generation_id, bucket_hash, doc_id)';
            EXECUTE 'ALTER TABLE %2$s REPLICA IDENTITY USING INDEX ' || index_name;
        END IF;
    END $$
    $command$)
WHERE NOT success

-- name: use_connections
-- Until the transaction ends, use as many connections to each node as the server allows, for long statements on all shards.
SET LOCAL citus.max_adaptive_executor_pool_size TO DEFAULT

-- name: await_band_writers
-- Wait for transactions, also prepared ones, that write to the table that small generations share: lock each shard, and
-- release the lock at once. Returns each shard that cannot be locked, and the reason. Runs one command for each shard.
SELECT shardid, result FROM pg_catalog.run_command_on_shards('nearsim_index.band_shared', $command$
    DO $$
    BEGIN
        PERFORM set_config('citus.enable_manual_changes_to_shards', 'on', true);
        LOCK TABLE %s IN SHARE MODE;
    END $$
    $command$)
WHERE NOT success

-- name: find_shards
-- For each bucket, the number of its shard, from 1. Reads only the catalog.
SELECT array_agg(width_bucket(hashint8(bucket_hash), lows) ORDER BY place)
FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) WITH ORDINALITY AS bucket (bucket_hash, place)
CROSS JOIN (
    SELECT array_agg(low ORDER BY low) AS lows FROM (
        SELECT CAST(shardminvalue AS integer) AS low FROM pg_catalog.pg_dist_shard
        WHERE logicalrelid = CAST('nearsim.band' AS regclass)
    ) AS shard
) AS shards

-- name: list_bucket_members
-- The members of these buckets, up to a maximum number of all members. Planning this and sending it to a shard takes a third
-- of the time of look_up_candidates, but only that statement stops at the bucket limit in large buckets. Relies on the index
-- on (bucket_hash, doc_id).
SELECT bucket_hash, doc_id FROM {band} AS band WHERE bucket_hash = ANY(CAST(%(bucket_hashes)s AS bigint[]))
LIMIT %(limit)s

-- name: look_up_heads
-- The heads to compare with a text that is not in the index, as look_up_anchors returns them, for anchors that were read
-- before. The work is bounded, and the plan is the same whatever the statistics. Relies on the same indexes.
SELECT packed.doc_ids, packed.sketches, packed.digests, packed.sizes
FROM {serving}
LEFT JOIN LATERAL (
    WITH twin AS MATERIALIZED (
        SELECT doc_id FROM {signature} AS signature WHERE feature_digest = %(digest)s ORDER BY doc_id LIMIT 1
    ), linked AS MATERIALIZED (
        SELECT doc_id FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS anchor (doc_id)
        {with_twin_and_its_pairs}
    )
    {packed_heads}
) AS packed ON true

-- name: delete_next_band
-- Delete, on all nodes, the rows of the first band that a generation still has in a table that it shares. Deleting all bands
-- at once would be a long transaction. Relies on the key.
WITH next AS MATERIALIZED (
    SELECT min(bucket_hash) AS bucket_hash FROM {band_leaf} AS band WHERE {of_generation}
)
DELETE FROM {band_leaf} AS band WHERE {of_generation}
    AND bucket_hash <= (SELECT next.bucket_hash | 72057594037927935 FROM next)
