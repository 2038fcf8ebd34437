-- Drop an index while its table is read and written.
DROP INDEX CONCURRENTLY {index}
