-- Work that failed or was set aside, and that nobody is at, is not done at all. What is to be told stays: consumers would
-- miss it for good. Relies on work_tried_before.
WITH chosen AS MATERIALIZED (
    SELECT work.generation_id, work.stage, work.doc_id, coalesce(document.external_id, '#' || work.doc_id) AS id
    FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id)
    JOIN nearsim.collection USING (collection_id)
    JOIN nearsim.work USING (generation_id)
    LEFT JOIN nearsim.document ON document.doc_id = work.doc_id AND document.collection_id = collection.collection_id
    WHERE work.attempts > 0 AND work.lease_id IS NULL AND work.stage <> 'tell'
        AND (collection.collection_id = %(collection_id)s OR %(collection_id)s IS NULL AND NOT collection.temporary)
        AND (coalesce(document.external_id, '#' || work.doc_id) = ANY(CAST(%(ids)s AS text[])) OR %(ids)s IS NULL)
    ORDER BY work.generation_id, work.stage, work.doc_id
    FOR UPDATE OF work
)
DELETE FROM nearsim.work USING chosen
WHERE work.generation_id = chosen.generation_id AND work.stage = chosen.stage AND work.doc_id = chosen.doc_id
RETURNING chosen.id
