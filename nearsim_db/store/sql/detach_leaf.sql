-- A partition leaves without blocking who reads or writes the others; not to be run in a transaction.
ALTER TABLE {parent} DETACH PARTITION {leaf} CONCURRENTLY
