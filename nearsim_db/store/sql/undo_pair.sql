-- Undo what was decided about two documents of a collection, by external_id.
SELECT verdict_id FROM nearsim.undo_verdict(
    CAST(%(a)s AS text), CAST(%(b)s AS text), %(why)s, coalesce(%(by)s, current_user), %(collection)s)
