-- Names are looked for as in all our sessions.
SET LOCAL search_path = pg_catalog, pg_temp
