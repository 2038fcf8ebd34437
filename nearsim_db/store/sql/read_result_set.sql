-- The revisions of some documents as they are signed, and the sketches of those that are not at the revision given, in
-- one round trip. One row of nulls where none is signed, no row where the generation does not serve, or texts were purged
-- since sketches of the collection were last let go. Relies on the key of the signatures.
SELECT found.doc_id, found.revision, found.sketch
FROM (
    SELECT FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE generation.generation_id = {generation_id} AND generation.state = 'live'
        AND collection.purged_at IS NOT DISTINCT FROM CAST(%(purged_at)s AS timestamptz)
) AS serving
LEFT JOIN LATERAL (
    SELECT asked.doc_id, signed.revision,
        CASE WHEN signed.revision <> asked.revision THEN signed.sketch END AS sketch
    FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(revisions)s AS bigint[])) AS asked (doc_id, revision)
    CROSS JOIN LATERAL (
        SELECT revision, sketch FROM {signature} WHERE doc_id = asked.doc_id LIMIT 1) AS signed
) AS found ON true
