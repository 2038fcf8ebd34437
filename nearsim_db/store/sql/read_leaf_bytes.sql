-- What tables take on disk with their indexes; those that are not there take nothing.
SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0) FROM unnest(CAST(%(tables)s AS text[])) AS named (name)
