-- The verdicts of a collection, the newest first; documents that are gone by their number after a #. Relies on
-- verdict_collection.
SELECT coalesce(one.external_id, '#' || verdict.left_id), coalesce(other.external_id, '#' || verdict.right_id),
    verdict.verdict, verdict.by, verdict.why, verdict.at, verdict.undone_by, verdict.undone_why, verdict.undone_at
FROM nearsim.verdict
LEFT JOIN nearsim.document AS one ON one.doc_id = verdict.left_id
LEFT JOIN nearsim.document AS other ON other.doc_id = verdict.right_id
WHERE verdict.collection_id = %(collection_id)s AND (%(undone)s OR verdict.undone_at IS NULL)
    AND (CAST(%(by)s AS text) IS NULL OR %(by)s IN (verdict.by, verdict.undone_by))
ORDER BY verdict.verdict_id DESC
