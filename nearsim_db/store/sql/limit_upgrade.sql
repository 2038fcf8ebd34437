-- In this session wait for locks only so long, as everybody else waits behind that, but work as long as it takes. Where the
-- session may, it also looks earlier for what it is blocked by: the server ends an autovacuum then, and in a deadlock this
-- session, not an application.
SELECT set_config('lock_timeout', %(milliseconds)s, false), set_config('statement_timeout', '0', false),
    CASE WHEN has_parameter_privilege('deadlock_timeout', 'SET') THEN set_config('deadlock_timeout', '50ms', false) END
