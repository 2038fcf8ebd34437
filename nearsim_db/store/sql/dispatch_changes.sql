-- Turn noted changes into work for every generation of their collections. A change is taken by deleting it, never by a
-- cursor over change_id: ids commit late. Work that is there already stays; a worker that is at it holds its row, so
-- that this waits for it and the change is worked off again.
WITH taken AS (
    DELETE FROM nearsim.change WHERE change_id = ANY (ARRAY(
        SELECT change_id FROM nearsim.change ORDER BY change_id LIMIT %(batch)s FOR UPDATE SKIP LOCKED))
    RETURNING collection_id, doc_id
), queued AS (
    INSERT INTO nearsim.work (generation_id, doc_id, stage)
    SELECT DISTINCT generation.generation_id, taken.doc_id, 'sign'
    FROM taken
    JOIN nearsim.profile ON profile.collection_id = taken.collection_id
    JOIN nearsim.generation ON generation.profile_id = profile.profile_id AND generation.state <> 'abandoned'
    ON CONFLICT DO NOTHING
)
SELECT count(*), count(*) FILTER (WHERE doc_id IS NULL) FROM taken
