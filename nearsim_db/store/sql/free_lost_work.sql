-- What lost workers had is free again, and counts as tried: it may be what they died of.
UPDATE nearsim.work SET lease_id = NULL,
    attempts = CASE WHEN again THEN 0 ELSE attempts + 1 END, again = false,
    error = 'the worker that was at it died or went silent',
    set_aside_at = CASE WHEN NOT again AND attempts + 1 > %(most)s THEN clock_timestamp() END
WHERE lease_id = ANY(CAST(%(lease_ids)s AS integer[]))
RETURNING doc_id
