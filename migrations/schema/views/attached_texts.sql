-- Documents whose texts are in an attached table. Row-level security of document applies to the caller; read_attached_text
-- reads a text when its row is updated. Relies on document_pkey.
CREATE VIEW nearsim_index.attached_texts WITH (security_invoker = true, security_barrier = true) AS
SELECT document.doc_id, document.body FROM nearsim.document WHERE document.body_digest IS NOT NULL;

COMMENT ON VIEW nearsim_index.attached_texts IS
    'Internal (used by body_of): documents whose texts are in an attached table; UPDATE ... RETURNING body reads them and writes nothing';
COMMENT ON COLUMN nearsim_index.attached_texts.doc_id IS 'Number of the document';
COMMENT ON COLUMN nearsim_index.attached_texts.body IS 'NULL; the text in RETURNING of an UPDATE';
