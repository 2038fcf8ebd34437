-- Until the transaction ends names are looked for as the user's own sessions do it.
SELECT set_config('search_path', reset_val, true) FROM pg_catalog.pg_settings WHERE name = 'search_path'
