-- Whoever keeps features of the collection in memory lets go of them when this changes.
UPDATE nearsim.collection SET purged_at = clock_timestamp() WHERE collection_id = %(collection_id)s RETURNING purged_at
