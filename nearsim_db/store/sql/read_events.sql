-- Events of a collection, profile and kinds, all where these are NULL, in their order. Relies on event_pkey.
SELECT event_id, kind, at, collection, profile, left_external_id, right_external_id, similarity, survivor_external_id,
    left_id, right_id, cluster_id, survivor_id, other_ids, other_survivor_ids, generation_id, pruned
FROM nearsim.events
WHERE event_id > %(after)s AND event_id <= %(newest)s
    AND (CAST(%(collection_id)s AS integer) IS NULL OR collection_id = %(collection_id)s)
    AND (CAST(%(profile_id)s AS integer) IS NULL OR profile_id = %(profile_id)s)
    AND (CAST(%(kinds)s AS text[]) IS NULL OR kind = ANY(CAST(%(kinds)s AS text[])))
ORDER BY event_id LIMIT %(most)s
