-- One row for each collection, with those documents in the setting nearsim.asked_documents whose texts are in an attached
-- table. Row-level security of document applies to the caller. An UPDATE of a row runs read_attached_texts, which reads the
-- texts. Relies on document_pkey.
CREATE VIEW nearsim_index.attached_texts WITH (security_invoker = true, security_barrier = true) AS
SELECT document.collection_id, array_agg(document.doc_id) AS doc_ids, array_agg(document.external_id) AS external_ids,
    CAST(NULL AS text[]) AS bodies
FROM nearsim.document
WHERE document.doc_id = ANY(CAST(nullif(current_setting('nearsim.asked_documents', true), '') AS bigint[]))
    AND document.body_digest IS NOT NULL
GROUP BY document.collection_id;

COMMENT ON VIEW nearsim_index.attached_texts IS
    'Internal (used by attached_bodies): documents whose texts are in an attached table; UPDATE ... RETURNING bodies reads them and writes nothing';
COMMENT ON COLUMN nearsim_index.attached_texts.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim_index.attached_texts.doc_ids IS 'Numbers of the documents';
COMMENT ON COLUMN nearsim_index.attached_texts.external_ids IS 'external_ids of the documents, in the same order';
COMMENT ON COLUMN nearsim_index.attached_texts.bodies IS 'The texts in the same order in RETURNING of an UPDATE; otherwise NULL';
