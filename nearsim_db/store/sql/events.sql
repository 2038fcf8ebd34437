-- name: read_newest_event
-- The number of the last event; all that have a smaller one can be seen too. Relies on event_pkey.
SELECT coalesce(max(event_id), 0) FROM nearsim.event

-- name: read_events
-- Events of a collection, profile and kinds, all where these are NULL, in their order. Relies on event_pkey.
SELECT event_id, kind, at, collection, profile, left_external_id, right_external_id, similarity, survivor_external_id,
    left_id, right_id, cluster_id, survivor_id, other_ids, other_survivor_ids, generation_id, pruned
FROM nearsim.events
WHERE event_id > %(after)s AND event_id <= %(newest)s
    AND (CAST(%(collection_id)s AS integer) IS NULL OR collection_id = %(collection_id)s)
    AND (CAST(%(profile_id)s AS integer) IS NULL OR profile_id = %(profile_id)s)
    AND (CAST(%(kinds)s AS text[]) IS NULL OR kind = ANY(CAST(%(kinds)s AS text[])))
ORDER BY event_id LIMIT %(most)s

-- name: hold_telling
-- Nobody else tells of a generation, or changes its state, until this transaction ends. Relies on generation_pkey.
SELECT FROM nearsim.generation WHERE generation_id = {generation_id} FOR NO KEY UPDATE

-- name: tell_slice
-- Tell so many pairs and clusters more of a generation that went live; whether others may be left.
SELECT nearsim.tell_slice({generation_id}, %(most)s)

-- name: prune_events
-- The oldest events go, as far as they are old enough. Of each kind and profile the last one that goes stays as a mark,
-- without what it was about, and takes the place of the mark before. Relies on event_pkey, as event_id and `at` grow
-- together, and on event_pruned.
WITH oldest AS MATERIALIZED (
    SELECT event_id, at, profile_id, kind FROM nearsim.event WHERE NOT pruned ORDER BY event_id LIMIT %(most)s
), gone AS MATERIALIZED (
    SELECT event_id, profile_id, kind, event_id = max(event_id) OVER (PARTITION BY profile_id, kind) AS is_last
    FROM oldest WHERE at < clock_timestamp() - make_interval(secs => %(age)s)
), unmarked AS (
    DELETE FROM nearsim.event USING gone
    WHERE gone.is_last AND event.pruned AND event.profile_id = gone.profile_id AND event.kind = gone.kind
), marked AS (
    UPDATE nearsim.event SET pruned = true, left_id = NULL, right_id = NULL, similarity = NULL, cluster_id = NULL,
        survivor_id = NULL, other_ids = NULL, other_survivor_ids = NULL
    FROM gone WHERE gone.is_last AND event.event_id = gone.event_id
), removed AS (
    DELETE FROM nearsim.event USING gone WHERE NOT gone.is_last AND event.event_id = gone.event_id
)
SELECT count(*) FROM gone

-- name: purge_events
-- How similar documents were to others is told of them no longer. There is no index on documents: events are few days old.
DELETE FROM nearsim.event
WHERE collection_id = %(collection_id)s AND kind = 'pair_found' AND NOT pruned
    AND (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))
