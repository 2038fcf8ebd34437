-- Those of some documents on which a pin stands, packed as eight bytes each. Relies on verdict_left and verdict_right.
SELECT coalesce(string_agg(int8send(asked.doc_id), ''), '')
FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS asked (doc_id)
WHERE EXISTS (
        SELECT FROM nearsim.verdict WHERE left_id = asked.doc_id AND collection_id = %(collection_id)s
            AND verdict = 'pinned' AND undone_at IS NULL)
    OR EXISTS (
        SELECT FROM nearsim.verdict WHERE right_id = asked.doc_id AND collection_id = %(collection_id)s
            AND verdict = 'pinned' AND undone_at IS NULL)
