-- Whether a table is a partition, and whether an interrupted detach of it is still to be finished.
SELECT inhdetachpending FROM pg_catalog.pg_inherits WHERE inhrelid = pg_catalog.to_regclass(%(leaf)s)
