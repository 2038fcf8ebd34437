-- A sweep that began at a moment is done.
UPDATE nearsim.attachment SET swept_at = %(began)s, unusable = %(unusable)s, trouble = NULL, troubled_at = NULL,
    sweep_seconds = extract(epoch FROM clock_timestamp() - %(began)s)
WHERE collection_id = %(collection_id)s
