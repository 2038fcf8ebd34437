-- Say that two documents of a collection do not belong together, by external_id.
SELECT verdict_id FROM nearsim.veto_pair(
    CAST(%(a)s AS text), CAST(%(b)s AS text), %(why)s, coalesce(%(by)s, current_user), %(collection)s)
