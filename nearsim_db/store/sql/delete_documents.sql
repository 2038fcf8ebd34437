-- Delete documents and queue that for the generations that serve. Relies on document_external_id_key.
WITH gone AS (
    DELETE FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND external_id = ANY(CAST(%(external_ids)s AS text[]))
    RETURNING doc_id, external_id
), queued AS (
    INSERT INTO nearsim.work (generation_id, doc_id, stage)
    SELECT generation_id, doc_id, 'sign'
    FROM gone CROSS JOIN unnest(CAST(%(serving)s AS integer[])) AS serving (generation_id)
    ON CONFLICT DO NOTHING
)
SELECT external_id FROM gone ORDER BY doc_id
