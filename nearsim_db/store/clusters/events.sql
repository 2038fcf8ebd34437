-- name: read_newest_event
-- The largest event_id; all events with smaller ids are visible too. Relies on event_pkey.
SELECT coalesce(max(event_id), 0) FROM nearsim.event

-- name: read_events
-- Read the events of a collection, of a profile and of the given kinds, in order; for each, NULL means all. Relies on
-- event_pkey.
SELECT event_id, kind, at, collection, profile, left_external_id, right_external_id, similarity, survivor_external_id,
    left_id, right_id, cluster_id, survivor_id, other_ids, other_survivor_ids, generation_id,
    verified, pruned
FROM nearsim.events
WHERE event_id > %(after)s AND event_id <= %(newest)s
    AND (CAST(%(collection_id)s AS integer) IS NULL OR collection_id = (SELECT CAST(%(collection_id)s AS integer)))
    AND (CAST(%(profile_id)s AS integer) IS NULL OR profile_id = %(profile_id)s)
    AND (CAST(%(kinds)s AS text[]) IS NULL OR kind = ANY(CAST(%(kinds)s AS text[])))
ORDER BY event_id LIMIT %(max_events)s

-- name: prune_events
-- Delete the oldest events that exceed an age. The last deleted event of each kind and profile is kept as an empty mark,
-- which replaces the previous mark. Relies on event_pkey, because event_id and `at` grow together, and on event_pruned.
WITH oldest AS MATERIALIZED (
    SELECT event_id, at, profile_id, kind FROM nearsim.event WHERE pruned IS NULL ORDER BY event_id LIMIT %(max_events)s
), expired AS MATERIALIZED (
    SELECT event_id, profile_id, kind, event_id = max(event_id) OVER (PARTITION BY profile_id, kind) AS is_last
    FROM oldest WHERE at < clock_timestamp() - make_interval(secs => %(age)s)
), unmarked AS (
    DELETE FROM nearsim.event USING expired
    WHERE expired.is_last AND event.pruned AND event.profile_id = expired.profile_id AND event.kind = expired.kind
), marked AS (
    UPDATE nearsim.event SET pruned = true, left_id = NULL, right_id = NULL, similarity = NULL, verified = NULL,
        cluster_id = NULL, survivor_id = NULL, other_ids = NULL, other_survivor_ids = NULL
    FROM expired WHERE expired.is_last AND event.event_id = expired.event_id
), removed AS (
    DELETE FROM nearsim.event USING expired WHERE NOT expired.is_last AND event.event_id = expired.event_id
)
SELECT count(*) FROM expired

-- name: purge_events
-- Delete events with similarities of purged documents. Reads all events, which are kept only for a few days and have no
-- index on documents.
DELETE FROM nearsim.event
WHERE collection_id = %(collection_id)s AND kind = 'pair_found' AND pruned IS NULL
    AND (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))
