-- Probes that were taken are answered: what was found, row by row, or why nothing could be. Relies on probe_pkey.
WITH answered AS (
    UPDATE nearsim.probe SET answered_at = clock_timestamp(), error = answer.error
    FROM unnest(CAST(%(probe_ids)s AS bigint[]), CAST(%(errors)s AS text[])) AS answer (probe_id, error)
    WHERE probe.probe_id = answer.probe_id
)
INSERT INTO nearsim.probe_match
    (probe_id, doc_id, similarity, estimate, shared_bands, intersection_size, union_size, distance)
SELECT * FROM unnest(
    CAST(%(owners)s AS bigint[]), CAST(%(doc_ids)s AS bigint[]), CAST(%(similarities)s AS double precision[]),
    CAST(%(estimates)s AS real[]), CAST(%(shared_bands)s AS smallint[]), CAST(%(intersections)s AS integer[]),
    CAST(%(unions)s AS integer[]), CAST(%(distances)s AS double precision[]))
