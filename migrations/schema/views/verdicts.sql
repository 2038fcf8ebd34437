-- All verdicts, including verdicts on documents that are not a pair or were deleted. Relies on verdict_pair_key, verdict_right
-- and document_pkey.
CREATE VIEW nearsim.verdicts WITH (security_invoker = true) AS
SELECT collection.name AS collection, verdict.collection_id, verdict.verdict_id, verdict.left_id, verdict.right_id,
    a.external_id AS left_external_id, b.external_id AS right_external_id, a.title AS left_title, b.title AS right_title,
    verdict.verdict, verdict.by, verdict.why, verdict.at, verdict.undone_by, verdict.undone_why, verdict.undone_at
FROM nearsim.verdict
JOIN nearsim.collection USING (collection_id)
LEFT JOIN nearsim.document AS a ON a.doc_id = verdict.left_id
LEFT JOIN nearsim.document AS b ON b.doc_id = verdict.right_id;

COMMENT ON VIEW nearsim.verdicts IS
    'Verdicts of people on two documents, whether the documents are a pair or not. A verdict is in force while undone_at is NULL';
COMMENT ON COLUMN nearsim.verdicts.left_external_id IS 'external_id of the left document; NULL if it was deleted';
COMMENT ON COLUMN nearsim.verdicts.right_external_id IS 'external_id of the right document; NULL if it was deleted';
COMMENT ON COLUMN nearsim.verdicts.left_title IS 'Title of the left document; NULL if it has none or was deleted';
COMMENT ON COLUMN nearsim.verdicts.right_title IS 'Title of the right document; NULL if it has none or was deleted';
