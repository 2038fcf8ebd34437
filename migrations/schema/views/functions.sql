-- What there is to call. The comment of every other function begins with what it is a part of, or that it is a trigger.
CREATE VIEW nearsim.functions WITH (security_invoker = true) AS
SELECT CAST(proname AS text) AS name, pg_get_function_arguments(oid) AS arguments,
    pg_get_function_result(oid) AS returns, obj_description(oid, 'pg_proc') AS comment
FROM pg_catalog.pg_proc
WHERE pronamespace = CAST('nearsim' AS regnamespace) AND obj_description(oid, 'pg_proc') !~ '^(Part of|Trigger)'
ORDER BY proname, pronargs;

COMMENT ON VIEW nearsim.functions IS
    'The functions that are meant to be called; all others are parts of these or of nearsim itself';
COMMENT ON COLUMN nearsim.functions.name IS 'Name of the function';
COMMENT ON COLUMN nearsim.functions.arguments IS
    'What it takes, with names, types and defaults: every argument may be given by name, as in profile => ''default''';
COMMENT ON COLUMN nearsim.functions.returns IS 'What it returns; NULL for a procedure, which is run with CALL';
COMMENT ON COLUMN nearsim.functions.comment IS 'What it does';
