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
