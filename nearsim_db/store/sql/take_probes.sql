-- The most urgent probes of one collection, or of all, that nobody is answering; they stay locked until the transaction
-- ends, which the server sees to where it is idle for too long. It need not be durable: a probe whose answer is lost in a
-- crash waits as before. Relies on probe_waiting.
SELECT probe.probe_id, probe.collection_id, collection.name, probe.profile, probe.title, probe.body,
    probe.min_similarity, set_config('idle_in_transaction_session_timeout', '60s', true),
    set_config('synchronous_commit', 'off', true)
FROM nearsim.probe JOIN nearsim.collection USING (collection_id)
WHERE probe.answered_at IS NULL AND probe.deadline > now()
    AND collection.name = coalesce(CAST(%(collection)s AS text), collection.name)
ORDER BY probe.deadline LIMIT %(batch)s
FOR UPDATE OF probe SKIP LOCKED
