-- Some pairs go. Relies on the key.
DELETE FROM {similar_pair} AS pair
USING unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) AS gone (left_id, right_id)
WHERE pair.left_id = gone.left_id AND pair.right_id = gone.right_id
