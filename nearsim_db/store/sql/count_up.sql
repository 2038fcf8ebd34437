-- Add to the figures of a generation.
UPDATE nearsim.generation SET figures = figures || (
    SELECT jsonb_object_agg(key, coalesce(CAST(figures ->> key AS bigint), 0) + CAST(value AS bigint))
    FROM jsonb_each_text(%(counted)s))
WHERE generation_id = %(generation_id)s
