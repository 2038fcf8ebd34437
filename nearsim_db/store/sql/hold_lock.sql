-- Hold an advisory lock until the transaction ends, and let the server end it where it is idle for too long.
SELECT set_config('idle_in_transaction_session_timeout', '60s', true), pg_advisory_xact_lock(%(kind)s, %(id)s)
