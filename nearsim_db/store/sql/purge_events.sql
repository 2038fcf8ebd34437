-- How similar documents were to others is told of them no longer. There is no index on documents: events are few days old.
DELETE FROM nearsim.event
WHERE collection_id = %(collection_id)s AND kind = 'pair_found' AND NOT pruned
    AND (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))
