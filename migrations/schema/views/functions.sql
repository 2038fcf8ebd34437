-- Functions that users may call. The comment of every other function begins with Internal or Trigger.
CREATE VIEW nearsim.functions WITH (security_invoker = true) AS
SELECT CAST(proname AS text) AS name, pg_get_function_arguments(oid) AS arguments,
    pg_get_function_result(oid) AS returns, obj_description(oid, 'pg_proc') AS comment
FROM pg_catalog.pg_proc
WHERE pronamespace = CAST('nearsim' AS regnamespace) AND obj_description(oid, 'pg_proc') !~ '^(Internal|Trigger)'
ORDER BY proname, pronargs;

COMMENT ON VIEW nearsim.functions IS 'Functions that applications and analysts may call; all other functions are internal';
COMMENT ON COLUMN nearsim.functions.name IS 'Name of the function';
COMMENT ON COLUMN nearsim.functions.arguments IS
    'Arguments with types and defaults; each may be passed by name, as in profile => ''default''';
COMMENT ON COLUMN nearsim.functions.returns IS 'Return type; NULL for a procedure, which is run with CALL';
COMMENT ON COLUMN nearsim.functions.comment IS 'What the function returns or does';
