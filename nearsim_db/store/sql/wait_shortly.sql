-- This session waits for locks only so long, as others wait behind it.
SELECT set_config('lock_timeout', %(milliseconds)s, false)
