-- Whether a generation's own tables are there, attached or not; they are made and dropped together.
SELECT pg_catalog.to_regclass(%(leaf)s) IS NOT NULL
