-- name: exists
-- Read whether the tables of a generation exist, attached or not, by one of them: a generation's own tables are created
-- and dropped together. Reads only the catalog.
SELECT pg_catalog.to_regclass(%(leaf)s) IS NOT NULL

-- name: create_leaves
-- Create a generation's own tables of signatures and bands. They are no partitions until they are loaded, so that the
-- parents are locked only briefly when they are attached; with the CHECK on generation_id, ATTACH need not scan them.
-- They get the owner and the rights of the parents.
CREATE TABLE {signature_leaf} (
    LIKE nearsim.signature INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE,
    PRIMARY KEY (doc_id),
    CHECK (generation_id = {generation_id}));
ALTER TABLE {signature_leaf} ALTER COLUMN generation_id SET DEFAULT {generation_id};
CREATE TABLE {band_leaf} (
    LIKE nearsim.band INCLUDING DEFAULTS INCLUDING GENERATED,
    CHECK (generation_id = {generation_id}));
ALTER TABLE {band_leaf} ALTER COLUMN generation_id SET DEFAULT {generation_id};
COMMENT ON TABLE {signature_leaf} IS {leaf_comment};
COMMENT ON TABLE {band_leaf} IS {leaf_comment};
SELECT nearsim.grant_partition_rights({generation_id})

-- name: attach_leaf
-- Attach a loaded table to its parent; with its CHECK on generation_id, the server need not scan it.
ALTER TABLE {parent} ATTACH PARTITION {leaf} FOR VALUES FROM ({generation_id}) TO ({generation_id} + 1)

-- name: find_pending_detaches
-- Find the partitions of a parent whose detach was interrupted; it must be finished before another one can begin. Reads
-- only the catalog.
SELECT relname FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class ON pg_class.oid = inhrelid
WHERE inhparent = pg_catalog.to_regclass(%(parent)s) AND inhdetachpending

-- name: finish_detach
-- Finish the interrupted detach of a partition.
ALTER TABLE {parent} DETACH PARTITION {leaf} FINALIZE

-- name: is_attached
-- Read whether a table is a partition. Reads only the catalog.
SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = pg_catalog.to_regclass(%(leaf)s))

-- name: detach_leaf
-- Detach a partition without blocking sessions that use other partitions. This must not run in a transaction.
ALTER TABLE {parent} DETACH PARTITION {leaf} CONCURRENTLY

-- name: drop_leaves
-- Drop a generation's own tables of signatures and bands, and the functions that read them.
DROP ROUTINE IF EXISTS {pairs_of}, {evidence_of};
DROP TABLE IF EXISTS {band_leaf}, {signature_leaf}

-- name: is_small
-- Read whether a collection has so few documents that an index of it shares tables with others. Relies on
-- document_collection_doc, of which it reads at most one entry more than the limit.
SELECT count(*) <= %(max_documents)s
FROM (SELECT FROM nearsim.document WHERE collection_id = %(collection_id)s LIMIT %(max_documents)s + 1) AS document

-- name: delete_some_rows
-- Delete up to `limit` rows of a generation that is being dropped, in a table that it shares. Relies on the key.
DELETE FROM {leaf} WHERE {condition} AND ctid = ANY (ARRAY(SELECT ctid FROM {leaf} WHERE {condition} LIMIT %(limit)s))

-- name: delete_some_copies
-- Delete up to `limit` copies of the signatures of a large generation that is being dropped. Relies on the key.
DELETE FROM nearsim_index.signed_document WHERE generation_id = {generation_id} AND ctid = ANY (ARRAY(
    SELECT ctid FROM nearsim_index.signed_document WHERE generation_id = {generation_id} LIMIT %(limit)s))

-- name: list_remains
-- Read the numbers of generations that do not exist but have tables, or rows in shared tables. Returns none for users from
-- whom row-level security hides rows. Only signatures are read, because they are deleted last; this takes one step in
-- their key for each generation.
WITH RECURSIVE present AS (
    (SELECT generation_id FROM nearsim_index.signed ORDER BY generation_id LIMIT 1)
    UNION ALL
    SELECT next.generation_id FROM present CROSS JOIN LATERAL (
        SELECT generation_id FROM nearsim_index.signed AS signature
        WHERE signature.generation_id > present.generation_id ORDER BY generation_id LIMIT 1) AS next
), named AS (
    SELECT DISTINCT CAST(right(relname, 9) AS integer) AS generation_id FROM pg_catalog.pg_class
    WHERE relnamespace = pg_catalog.to_regnamespace('nearsim_index') AND relkind = 'r'
        AND relname ~ '^(signature|band|similar_pair|cluster_member)_[1-9][0-9]{{8}}$'
)
SELECT generation_id FROM (SELECT generation_id FROM present UNION SELECT generation_id FROM named) AS stored
WHERE NOT EXISTS (SELECT FROM nearsim.generation WHERE generation.generation_id = stored.generation_id)
    AND (SELECT pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class WHERE oid = CAST('nearsim.generation' AS regclass))
ORDER BY generation_id

-- name: list_grown_tables
-- Read in which of the given tables more rows were changed since their last ANALYZE than they had then. Reads only the
-- catalog.
SELECT leaf FROM unnest(CAST(%(leaves)s AS text[])) WITH ORDINALITY AS given (leaf, place)
JOIN pg_catalog.pg_class ON pg_class.oid = CAST(leaf AS regclass)
WHERE pg_catalog.pg_stat_get_mod_since_analyze(pg_class.oid) > 1000 + greatest(reltuples, 0)
ORDER BY place

-- name: read_share
-- Read the fraction of the rows of a table that belong to a generation. The number of all rows comes from statistics: it
-- is that of the last ANALYZE or, if this is more, the server's present estimate. Relies on the key.
SELECT count(*) / greatest(count(*), 1, (
    SELECT greatest(reltuples, pg_catalog.pg_stat_get_live_tuples(oid)) FROM pg_catalog.pg_class
    WHERE oid = CAST(%(leaf)s AS regclass)))
FROM {rows} AS generation_row

-- name: count_generation
-- Read the numbers of a generation: signatures, signatures without features, and twins; pairs and pairs to be reviewed,
-- where each twin counts as a document of its own, as in answers; stored pairs; clusters, documents in clusters, and
-- documents in the largest cluster; bytes of signatures and of pairs. Relies on the index on head_id.
WITH twins AS MATERIALIZED (
    SELECT head_id, count(*) + 1 AS members FROM {signature} AS signature WHERE head_id <> doc_id GROUP BY head_id
), expanded AS (
    SELECT count(*) FILTER (WHERE NOT in_review) AS stored,
        sum(coalesce(l.members, 1) * coalesce(r.members, 1)) FILTER (WHERE NOT in_review) AS pairs,
        coalesce(sum(coalesce(l.members, 1) * coalesce(r.members, 1)) FILTER (WHERE in_review), 0) AS review_pairs
    FROM {stored_pair} AS pair
    LEFT JOIN twins AS l ON l.head_id = pair.left_id
    LEFT JOIN twins AS r ON r.head_id = pair.right_id
), cluster AS (
    SELECT count(*) AS members FROM {cluster_member} AS cluster_member GROUP BY cluster_id
)
SELECT count(*), count(*) FILTER (WHERE feature_count = 0), count(*) FILTER (WHERE head_id <> doc_id),
    (SELECT coalesce(pairs, 0) + (SELECT coalesce(sum(members * (members - 1) / 2), 0) FROM twins) FROM expanded),
    (SELECT review_pairs FROM expanded), (SELECT stored FROM expanded),
    (SELECT count(*) FROM cluster), (SELECT coalesce(sum(members), 0) FROM cluster),
    (SELECT coalesce(max(members), 0) FROM cluster),
    pg_total_relation_size(CAST(%(signature)s AS regclass)), pg_total_relation_size(CAST(%(pair)s AS regclass))
FROM {signature} AS signature

-- name: measure_bands
-- Read the size of a table of band rows. Reads only the catalog.
SELECT pg_total_relation_size(CAST(%(band)s AS regclass))

-- name: measure_leaf
-- Read the size of a table with its indexes and its TOAST table. Reads only the catalog.
SELECT pg_total_relation_size(CAST(%(leaf)s AS regclass))

-- name: vacuum_leaf
-- Update the visibility map, which index-only scans need, and the planner statistics of a table.
VACUUM (ANALYZE) {leaf}

-- name: vacuum_shared
-- Do the same as vacuum_leaf for a table that generations share, but skip it if another session has locked it.
VACUUM (ANALYZE, SKIP_LOCKED) {leaf}

-- name: analyze_parents
-- Update the planner statistics for joins over all generations; autovacuum never analyzes parent tables. Only numeric
-- columns are analyzed, so that the statistics keep no text of a document. Skips tables that are locked.
ANALYZE (SKIP_LOCKED)
    {only} nearsim.signature (generation_id, doc_id, head_id),
    {only} nearsim.similar_pair (generation_id, left_id, right_id),
    {only} nearsim.cluster_member (generation_id, doc_id, cluster_id)

-- name: has_stale_statistics
-- Read whether the partitions of a parent table have together more than twice the rows that the parent had at its last
-- ANALYZE. Only parents that the user may analyze count. Reads only the catalog.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class AS parent
    JOIN pg_catalog.pg_inherits ON inhparent = parent.oid
    JOIN pg_catalog.pg_class AS leaf ON leaf.oid = inhrelid
    WHERE parent.relnamespace = pg_catalog.to_regnamespace('nearsim')
        AND parent.relname IN ('signature', 'similar_pair', 'cluster_member')
        AND pg_catalog.pg_has_role(parent.relowner, 'USAGE')
    GROUP BY parent.oid
    HAVING sum(greatest(leaf.reltuples, 0)) > 2 * greatest(parent.reltuples, 0))

-- name: list_stale_tables
-- Find tables of documents and of generations that were almost empty at their last ANALYZE or VACUUM and have changed since,
-- so that the planner expects them to be empty. Only tables that the user may analyze count. Reads only the catalog.
SELECT pg_namespace.nspname, pg_class.relname
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE (nspname = 'nearsim_index' OR nspname = 'nearsim' AND relname IN ('document', 'event'))
    AND relkind = 'r' AND reltuples >= 0 AND reltuples < relpages
    AND pg_catalog.pg_stat_get_mod_since_analyze(pg_class.oid) > 1000 + 10 * reltuples
    AND pg_catalog.pg_has_role(relowner, 'USAGE')

-- name: report_changes
-- Report the changes of the transaction to the server's statistics as soon as it is committed. Otherwise a session reports
-- at most once a second, so that list_stale_tables and list_grown_tables might not see the changes yet.
SELECT pg_catalog.pg_stat_force_next_flush()

-- name: analyze_table
-- Update the planner statistics of one table, unless it is locked.
ANALYZE (SKIP_LOCKED) {table}

-- name: read_leaf_bytes
-- Read the size in bytes that a table, with its indexes and its TOAST table, had at its last VACUUM; 0 if the table is
-- missing. To measure the present size would mean to wait for a running load. Reads only the catalog.
WITH leaf AS (SELECT to_regclass(%(leaf)s) AS id)
SELECT coalesce(sum(CAST(relpages AS bigint)), 0) * CAST(current_setting('block_size') AS bigint)
FROM pg_catalog.pg_class
WHERE oid IN (
    SELECT id FROM leaf
    UNION SELECT indexrelid FROM pg_catalog.pg_index JOIN leaf ON indrelid = id
    UNION SELECT reltoastrelid FROM pg_catalog.pg_class AS heap JOIN leaf ON heap.oid = id
    UNION SELECT indexrelid FROM pg_catalog.pg_class AS heap JOIN leaf ON heap.oid = id
        JOIN pg_catalog.pg_index ON indrelid = reltoastrelid)

-- name: list_lock_holders
-- Read the sessions that hold locks on the tables, or for whose snapshots an unfinished detach waits: process id, user and
-- application, the longest transaction first. Reads only the catalog.
WITH requested AS (
    SELECT to_regclass(name) AS relation FROM unnest(CAST(%(tables)s AS text[])) AS named (name)
), pending AS (
    SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits JOIN requested ON inhrelid = relation WHERE inhdetachpending) AS any
)
SELECT format('process %%s (%%s%%s)', activity.pid, activity.usename,
    CASE WHEN activity.application_name = '' THEN '' ELSE ', ' || activity.application_name END)
FROM pg_catalog.pg_stat_activity AS activity, pending
WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
    AND (EXISTS (
            SELECT FROM pg_catalog.pg_locks JOIN requested USING (relation)
            WHERE pg_locks.pid = activity.pid AND pg_locks.granted)
        OR pending.any AND activity.backend_xmin IS NOT NULL
            AND activity.xact_start < clock_timestamp() - interval '1 second')
ORDER BY activity.xact_start, activity.pid
