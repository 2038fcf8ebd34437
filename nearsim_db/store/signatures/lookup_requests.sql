-- name: take_probes
-- Lock the most urgent unanswered probes of a collection, or of all, until the transaction ends. The server ends a session
-- that is idle in this transaction for a minute. The commit does not wait for the disk, because a probe whose answer is lost
-- in a crash simply waits again. Relies on probe_waiting.
SELECT probe.probe_id, probe.collection_id, collection.name, probe.profile, probe.title, probe.body,
    probe.min_similarity, probe.max_matches, probe.external_id, probe.purpose,
    set_config('idle_in_transaction_session_timeout', '60s', true), set_config('synchronous_commit', 'off', true)
FROM nearsim.probe JOIN nearsim.collection USING (collection_id)
WHERE probe.answered_at IS NULL AND probe.deadline > now()
    AND collection.name = coalesce(CAST(%(collection)s AS text), collection.name)
ORDER BY probe.deadline LIMIT %(batch)s
FOR UPDATE OF probe SKIP LOCKED

-- name: answer_probes
-- Store answers: the matches of each probe, or its error. Relies on probe_pkey.
WITH answered AS (
    UPDATE nearsim.probe SET answered_at = clock_timestamp(), error = answer.error,
        generation_id = answer.generation_id, bucket_hashes = CAST(answer.bucket_hashes AS bigint[]),
        snapshot = answer.snapshot
    FROM unnest(CAST(%(probe_ids)s AS bigint[]), CAST(%(errors)s AS text[]), CAST(%(generation_ids)s AS integer[]),
            CAST(%(bucket_hashes)s AS text[]), CAST(%(snapshots)s AS text[]))
        AS answer (probe_id, error, generation_id, bucket_hashes, snapshot)
    WHERE probe.probe_id = answer.probe_id
)
INSERT INTO nearsim.probe_match
    (probe_id, doc_id, similarity, intersection_size, union_size, estimate, shared_bands, distance, verified)
SELECT * FROM unnest(
    CAST(%(owners)s AS bigint[]), CAST(%(doc_ids)s AS bigint[]), CAST(%(similarity)s AS double precision[]),
    CAST(%(intersection)s AS integer[]), CAST(%(union)s AS integer[]), CAST(%(estimate)s AS real[]),
    CAST(%(shared_bands)s AS smallint[]), CAST(%(distance)s AS double precision[]), CAST(%(verified)s AS boolean[]))

-- name: read_snapshot
-- The time of the server's clock, and the transactions that are committed at that time.
SELECT clock_timestamp(), CAST(pg_current_snapshot() AS text)

-- name: has_waiting_probe
-- Whether any probe of a collection, or of all, waits for its answer. Relies on probe_waiting.
SELECT EXISTS (
    SELECT FROM nearsim.probe JOIN nearsim.collection USING (collection_id)
    WHERE probe.answered_at IS NULL AND probe.deadline > now()
        AND collection.name = coalesce(CAST(%(collection)s AS text), collection.name))

-- name: delete_expired_probes
-- Delete probes long after their deadline, with their answers. A locked probe is skipped, because another session is
-- deleting it or answering it late. Relies on probe_age.
WITH old AS MATERIALIZED (
    SELECT probe_id FROM nearsim.probe WHERE deadline < now() - make_interval(secs => %(seconds)s)
    FOR UPDATE SKIP LOCKED
)
DELETE FROM nearsim.probe WHERE probe_id = ANY (ARRAY(SELECT probe_id FROM old))

-- name: purge_probes
-- Delete all probes of a collection, any of which may contain a purged text. Reads the whole table.
DELETE FROM nearsim.probe WHERE collection_id = %(collection_id)s
