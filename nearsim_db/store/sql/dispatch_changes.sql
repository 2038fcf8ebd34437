-- Turn noted changes into work for every generation of their collections: to sign, or to link only. A change is taken by
-- deleting it, never by a cursor over ids or times, which commit late. Work that is there already stays, to be done again if
-- a worker is at it.
WITH taken AS (
    DELETE FROM nearsim.change WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM nearsim.change WHERE doc_id IS NOT NULL OR collection_id IS NULL
        LIMIT %(batch)s FOR UPDATE SKIP LOCKED))
    RETURNING collection_id, doc_id, coalesce(stage, 'sign') AS stage
), chosen AS MATERIALIZED (
    SELECT profile.collection_id, generation.generation_id
    FROM nearsim.profile JOIN nearsim.generation USING (profile_id)
    WHERE generation.state <> 'abandoned' AND profile.collection_id IN (SELECT taken.collection_id FROM taken)
    FOR KEY SHARE OF generation
), queued AS (
    INSERT INTO nearsim.work AS stored (generation_id, doc_id, stage)
    SELECT DISTINCT chosen.generation_id, taken.doc_id, taken.stage FROM taken JOIN chosen USING (collection_id)
    ORDER BY 1, 3 DESC, 2
    ON CONFLICT (generation_id, stage, doc_id) DO UPDATE SET
        again = stored.lease_id IS NOT NULL, attempts = 0, error = NULL, set_aside_at = NULL, due_at = now(),
        queued_at = CASE WHEN stored.lease_id IS NULL THEN now() ELSE stored.queued_at END
    WHERE stored.lease_id IS NOT NULL OR stored.attempts > 0
)
SELECT count(*), count(*) FILTER (WHERE doc_id IS NULL) FROM taken
