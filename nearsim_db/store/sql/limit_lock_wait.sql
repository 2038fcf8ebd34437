-- Whoever waits for a lock on a table of an application has all its writers wait behind him, so it is not for long.
SELECT set_config('lock_timeout', %(milliseconds)s, true)
