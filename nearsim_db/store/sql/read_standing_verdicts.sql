-- The verdicts of a collection that stand, while its generation serves and no text was purged; rows as in
-- read_result_set. Reads the whole table, which holds what people decided one by one.
SELECT verdict.left_id, verdict.right_id, verdict.verdict = 'pinned'
FROM (
    SELECT collection.collection_id FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE generation.generation_id = {generation_id} AND generation.state = 'live'
        AND collection.purged_at IS NOT DISTINCT FROM CAST(%(purged_at)s AS timestamptz)
) AS serving
LEFT JOIN nearsim.verdict ON verdict.collection_id = serving.collection_id AND verdict.undone_at IS NULL
