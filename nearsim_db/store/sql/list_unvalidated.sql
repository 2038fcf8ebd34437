-- The constraints that hold for new rows and were not yet checked on the old ones: table and name, parents before leaves.
SELECT relname, conname
FROM pg_constraint
JOIN pg_class ON pg_class.oid = conrelid
WHERE relnamespace = to_regnamespace('nearsim') AND NOT convalidated
ORDER BY relkind = 'p' DESC, relname, conname
