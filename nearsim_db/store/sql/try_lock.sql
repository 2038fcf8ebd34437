-- A transaction's advisory lock, if nobody else has it.
SELECT pg_try_advisory_xact_lock(%(kind)s, %(id)s)
