-- Check the old rows of a table against a constraint; reading and writing go on meanwhile.
ALTER TABLE {table} VALIDATE CONSTRAINT {constraint}
