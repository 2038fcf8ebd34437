-- Whether a probe of one collection, or of any, waits for its answer. Relies on probe_waiting.
SELECT EXISTS (
    SELECT FROM nearsim.probe JOIN nearsim.collection USING (collection_id)
    WHERE probe.answered_at IS NULL AND probe.deadline > now()
        AND collection.name = coalesce(CAST(%(collection)s AS text), collection.name))
