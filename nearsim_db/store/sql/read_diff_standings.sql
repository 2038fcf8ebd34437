-- How some documents stand in a generation: whether they are there at all, what they are signed with, and whether the index
-- still has to be brought in line with them. Relies on the keys.
SELECT asked.doc_id, document.doc_id IS NOT NULL, document.external_id, document.title, signature.feature_count,
    signature.feature_digest, signature.sketch,
    EXISTS (SELECT FROM nearsim.work
        WHERE work.generation_id = {generation_id} AND work.doc_id = asked.doc_id AND work.stage IN ('sign', 'search')
            AND work.set_aside_at IS NULL)
FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS asked (doc_id)
LEFT JOIN nearsim.document ON document.doc_id = asked.doc_id
LEFT JOIN {signature} AS signature ON signature.doc_id = asked.doc_id
