-- The second half of a detach that was interrupted.
ALTER TABLE {parent} DETACH PARTITION {leaf} FINALIZE
