-- Put pairs into the ledger. A pair that is there already is the same: the digests of its documents decide it. In the
-- order of the key, so that two who store the same pairs do not deadlock. Arrays of what the metric does not tell are NULL.
INSERT INTO {similar_pair}
    (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance)
SELECT left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance
FROM unnest(
    CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[]), CAST(%(shared_bands)s AS smallint[]),
    CAST(%(estimates)s AS real[]), CAST(%(similarities)s AS double precision[]), CAST(%(intersections)s AS integer[]),
    CAST(%(unions)s AS integer[]), CAST(%(distances)s AS double precision[])
) AS found (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size, distance)
ORDER BY left_id, right_id
ON CONFLICT (left_id, right_id) DO NOTHING
RETURNING left_id, right_id
