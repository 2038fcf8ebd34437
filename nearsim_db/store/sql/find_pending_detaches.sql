-- The partition whose detach from a parent was interrupted, by whomever; until that is finished no other can be detached.
SELECT relname FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class ON pg_class.oid = inhrelid
WHERE inhparent = pg_catalog.to_regclass(%(parent)s) AND inhdetachpending
