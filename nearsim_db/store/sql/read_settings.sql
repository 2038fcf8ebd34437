-- Settings as they are for this session, as they are shown, in bytes where they are sizes, and whether a session can set them.
SELECT name, current_setting(name), CASE WHEN unit IN ('B', 'kB', '8kB', 'MB') THEN pg_size_bytes(current_setting(name)) END, context = 'user'
FROM pg_catalog.pg_settings WHERE name = ANY(CAST(%(names)s AS text[]))
ORDER BY name
