-- The vetoes that stand in a collection: both ends packed as eight bytes each. Relies on verdict_collection.
SELECT coalesce(string_agg(int8send(left_id) || int8send(right_id), ''), '') FROM nearsim.verdict
WHERE collection_id = %(collection_id)s AND verdict = 'vetoed' AND undone_at IS NULL
