-- Whether an index of the schema is whole; false for what a build that was broken off left, no row where there is none.
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(format('nearsim.%%I', CAST(%(name)s AS text)))
