-- Tables to sweep now: those that are wanted, those that were not for an hour (or for fifty times as long as it takes), and
-- those that could not be followed a minute ago.
SELECT collection_id FROM nearsim.attachment
WHERE NOT detaching AND (collection_id = %(collection_id)s OR %(collection_id)s IS NULL)
    AND CASE WHEN trouble IS NOT NULL THEN troubled_at < clock_timestamp() - interval '1 minute'
        ELSE (swept_at >= wanted_at) IS NOT TRUE
            OR swept_at < clock_timestamp() - greatest(interval '1 hour', 50 * make_interval(secs => sweep_seconds)) END
ORDER BY collection_id
