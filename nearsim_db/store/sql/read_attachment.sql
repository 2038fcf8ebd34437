-- Whether a table is a partition.
SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = pg_catalog.to_regclass(%(leaf)s))
