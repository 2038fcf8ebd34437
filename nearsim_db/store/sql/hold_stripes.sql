-- Wait for some locks, in the order in which they are given, and hold them until the transaction ends.
SELECT pg_advisory_xact_lock(stripe) FROM unnest(CAST(%(stripes)s AS bigint[])) AS q (stripe)
